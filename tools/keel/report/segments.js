// The map of the segments. Every byte has the same area: segments follow each other in order of
// address, from left to right and on in the next row, so that one that is longer than a row goes on
// in the next.
'use strict';

const segmentMap = (() => {
  const canvas = byId('map');
  const stage = byId('map-stage');
  const tip = byId('map-tip');
  const rowHeight = 17;
  const rowGap = 5;
  const kHole = 0;
  const kSmallKind = 1;
  const kPending = 2;
  const kGroups = 3;

  // [{name, tick, segments: [{address, size, stream, kind, blocks: [{address, size, kind}]}]}]
  const pictures = raw.pictures.map((picture) => {
    const address = sums(picture.address);
    const [size, stream, kind, count, blockSize, blockKind] =
      [picture.size, picture.stream, picture.kind, picture.count, picture.block_size, picture.block_kind]
        .map(numbers);
    let next = 0;
    const segments = [];
    for (let i = 0; i < address.length; ++i) {
      let at = address[i];
      const inside = [];
      for (let j = 0; j < count[i]; ++j, ++next) {
        inside.push({ address: at, size: blockSize[next], kind: blockKind[next] });
        at += blockSize[next];
      }
      segments.push({ address: address[i], size: size[i], stream: stream[i], kind: kind[i], blocks: inside });
    }
    return { name: picture.name, tick: picture.tick, segments };
  });

  // The segments at any tick, from what is known of regions and of blocks that are not small.
  function pictureAt(tick) {
    const segments = [];
    for (let i = 0; i < regions.count; ++i) {
      if (regions.start[i] > tick || regions.end[i] <= tick) continue;
      const last = segments[segments.length - 1];
      if (last !== undefined && regions.expandable[i] && last.kind === 2 &&
          last.stream === regions.stream[i] && last.address + last.size === regions.address[i]) {
        last.size += regions.size[i];
        continue;
      }
      segments.push({ address: regions.address[i], size: regions.size[i], stream: regions.stream[i],
        kind: regions.expandable[i] ? 2 : 0, blocks: [] });
    }
    const live = liveAt(tick);
    let next = 0;
    for (const segment of segments) {
      const end = segment.address + segment.size;
      let at = segment.address;
      while (next < live.length && blocks.address[live[next]] < segment.address) ++next;
      for (; next < live.length && blocks.address[live[next]] < end; ++next) {
        const address = blocks.address[live[next]];
        if (address < at) continue;
        if (address > at) segment.blocks.push({ address: at, size: address - at, kind: kHole });
        const size = Math.min(blocks.size[live[next]], end - address);
        segment.blocks.push({ address, size, kind: kGroups + blocks.group[live[next]] });
        at = address + size;
      }
      if (at < end) segment.blocks.push({ address: at, size: end - at, kind: kHole });
    }
    return { name: 'cursor', tick, segments };
  }

  function liveAt(tick) {
    const live = [];
    for (let i = 0; i < blocks.count && blocks.start[i] <= tick; ++i) {
      if (blocks.end[i] > tick) live.push(i);
    }
    return live.sort((a, b) => blocks.address[a] - blocks.address[b]);
  }

  let shown = pictures[0] ?? null;
  let pieces = [];  // [{x, y, width, segment, from, to}], from and to in bytes of the segment

  function totals(picture) {
    const sum = { reserved: 0, used: 0, holes: 0, hole: 0, largest: 0 };
    for (const segment of picture.segments) {
      sum.reserved += segment.size;
      for (const block of segment.blocks) {
        if (block.kind !== kHole) {
          sum.used += block.size;
          continue;
        }
        ++sum.holes;
        sum.hole += block.size;
        sum.largest = Math.max(sum.largest, block.size);
      }
    }
    return sum;
  }

  // Where every segment goes, and how many rows that takes.
  function layOut(width, bytesPerPixel) {
    pieces = [];
    let x = 0;
    let row = 0;
    for (const segment of shown.segments) {
      let from = 0;
      while (from < segment.size) {
        if (width - x < 3) {
          x = 0;
          ++row;
        }
        const wanted = Math.max(2, (segment.size - from) / bytesPerPixel);
        const here = Math.min(wanted, width - x);
        const to = here === wanted ? segment.size : Math.min(segment.size, from + here * bytesPerPixel);
        pieces.push({ x, y: row * (rowHeight + rowGap), width: here, segment, from, to });
        x += here;
        from = to;
      }
      x += 2;
    }
    return (row + 1) * (rowHeight + rowGap);
  }

  function colourOf(kind, small, pending) {
    if (kind === kSmallKind) return small;
    if (kind === kPending) return pending;
    return css(groupColour(kind - kGroups));
  }

  function hatched(context) {
    const tile = document.createElement('canvas');
    tile.width = tile.height = 8;
    const ink = tile.getContext('2d');
    ink.strokeStyle = themeColour('--hole');
    ink.lineWidth = 1.6;
    ink.beginPath();
    for (const by of [-8, 0, 8]) {
      ink.moveTo(by - 1, 9);
      ink.lineTo(by + 9, -1);
    }
    ink.stroke();
    return context.createPattern(tile, 'repeat');
  }

  function draw() {
    if (shown === null) return;
    const width = canvas.clientWidth;
    const sum = totals(shown);
    const rows = Math.min(22, Math.max(4, Math.ceil(shown.segments.length / 6)));
    const height = layOut(width, Math.max(1, sum.reserved / (rows * width)));
    const { context } = fitCanvas(canvas, Math.max(height, rowHeight));
    const hole = hatched(context);
    const small = css([134, 146, 160], 0.75);
    const pending = themeColour('--recorded');
    const edge = themeColour('--card');
    for (const piece of pieces) {
      const scale = piece.width / (piece.to - piece.from);
      context.fillStyle = hole;
      context.fillRect(piece.x, piece.y, piece.width, rowHeight);
      const first = piece.segment.address + piece.from;
      const last = piece.segment.address + piece.to;
      for (const block of piece.segment.blocks) {
        if (block.kind === kHole || block.address + block.size <= first || block.address >= last) continue;
        const from = Math.max(block.address, first) - first;
        const to = Math.min(block.address + block.size, last) - first;
        const w = (to - from) * scale;
        context.fillStyle = colourOf(block.kind, small, pending);
        context.fillRect(piece.x + from * scale, piece.y, Math.max(w, 0.5), rowHeight);
        if (w > 4) {
          context.fillStyle = edge;
          context.fillRect(piece.x + to * scale - 0.6, piece.y, 0.6, rowHeight);
        }
      }
      context.strokeStyle = themeColour('--hole');
      context.lineWidth = 1;
      context.strokeRect(piece.x + 0.5, piece.y + 0.5, Math.max(piece.width - 1, 1), rowHeight - 1);
    }
    describe(sum);
  }

  function describe(sum) {
    const what = `${formatCount(shown.segments.length)} segments with ${formatBytes(sum.reserved)}, of which ` +
      `${formatBytes(sum.used)} were in use; ${formatBytes(sum.hole)} in ${formatCount(sum.holes)} holes, ` +
      `the largest ${formatBytes(sum.largest)}.`;
    const unknown = shown.name === 'cursor' && raw.small.blocks > 0
      ? ` Blocks below ${formatBytes(raw.small.below)} are not known here and count as holes.` : '';
    byId('segments-text').textContent = what + unknown;
    canvas.setAttribute('aria-label', `Every segment with its blocks; holes are hatched. ${what}`);
    if (byId('segments-list').open) fillTable();
  }

  function fillTable() {
    const rows = shown.segments.map((segment) => {
      let holes = 0;
      let largest = 0;
      for (const block of segment.blocks) {
        if (block.kind !== kHole) continue;
        holes += block.size;
        largest = Math.max(largest, block.size);
      }
      return { segment, holes, largest };
    }).sort((a, b) => b.holes - a.holes);
    const cell = (text, attributes = {}) => element('td', attributes, text);
    byId('segments-table').tBodies[0].replaceChildren(...rows.slice(0, 300).map(({ segment, holes, largest }) =>
      element('tr', {}, cell(formatAddress(segment.address), { class: 'mono' }),
        cell(formatBytes(segment.size), { class: 'n' }), cell(formatBytes(segment.size - holes), { class: 'n' }),
        cell(formatBytes(holes), { class: 'n' }), cell(formatBytes(largest), { class: 'n' }),
        cell(raw.streams[segment.stream]))));
  }

  function pieceAt(event) {
    const box = canvas.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    const piece = pieces.find((each) =>
      x >= each.x && x < each.x + each.width && y >= each.y && y < each.y + rowHeight);
    if (piece === undefined) return null;
    const at = piece.segment.address + piece.from + (x - piece.x) / piece.width * (piece.to - piece.from);
    const block = piece.segment.blocks.find((each) => at >= each.address && at < each.address + each.size);
    return { segment: piece.segment, block, x, y };
  }

  // The block of the timeline that a block of the map is.
  function blockOf(block) {
    if (block === undefined || block.kind < kPending) return kNothing;
    for (const i of liveAt(shown.tick)) if (blocks.address[i] === block.address) return i;
    return kNothing;
  }

  canvas.addEventListener('pointermove', (event) => {
    const hit = pieceAt(event);
    if (hit === null) {
      tip.hidden = true;
      return;
    }
    const { segment, block } = hit;
    const used = segment.blocks.reduce((sum, each) => sum + (each.kind === kHole ? 0 : each.size), 0);
    const where = `in ${segment.kind & 2 ? 'an expandable segment' : 'a segment'} of ${formatBytes(segment.size)} at ` +
      `${formatAddress(segment.address)}, stream ${raw.streams[segment.stream]}, ` +
      `${(100 * used / segment.size).toFixed(0)} % in use`;
    const kind = block === undefined || block.kind === kHole ? 'Hole' : block.kind === kSmallKind ? 'Small block'
      : block.kind === kPending ? 'Waits to become free' : raw.groups[block.kind - kGroups][0];
    showTip(tip, stage, hit.x, hit.y, block === undefined ? kind : `${formatBytes(block.size)}`, kind, where);
  });
  canvas.addEventListener('pointerleave', () => { tip.hidden = true; });
  canvas.addEventListener('click', (event) => {
    const hit = pieceAt(event);
    const block = hit === null ? kNothing : blockOf(hit.block);
    if (block === kNothing) return;
    timeline.setCursor(shown.tick);
    timeline.select(block);
    byId('details').scrollIntoView({ block: 'nearest' });
  });
  byId('segments-list').addEventListener('toggle', () => { if (shown !== null) fillTable(); });

  return {
    pictures,
    known: pictures.length > 0,
    hasCursor: regions.count > 0 && hasHistory,
    draw,
    show(name) {
      shown = name === 'cursor' ? pictureAt(timeline.state.cursor)
        : pictures.find((picture) => picture.name === name);
      draw();
    },
  };
})();
