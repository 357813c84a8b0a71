// The timeline: the view, the picture and what lies over it, and how one moves in it.
'use strict';

const timeline = (() => {
  const stage = byId('stage');
  const base = byId('blocks');
  const overlay = byId('overlay');
  const overview = byId('overview');
  const tip = byId('tip');
  const lane = raw.phases.length > 0 ? 9 : 0;  // for the phases, under the blocks
  const margin = { left: 66, right: 10, top: 22, bottom: 26 + lane };

  const highest = Math.max(raw.recorded.peak_requested, raw.recorded.peak_reserved,
    ...replays.map((row) => row.peak_reserved), 1);
  const shownLines = new Set(knowsReserved ? ['recorded', 0] : [0]);
  const state = {
    axis: ticks.time,
    axisName: 'time',
    paintName: 'group',
    view: null,
    selected: kNothing,
    hovered: kNothing,
    group: null,  // the only one that is not dimmed
    cursor: raw.peak,  // a tick
    marked: null,  // [from, to] in pixels, while one marks with the mouse
  };
  let raster = null;
  let paint = null;
  let frame = { width: 0, height: 0, ratio: 1 };
  const listeners = [];

  const lastOf = (axis) => Math.max(axis[tickCount - 1], 1);
  const everything = () => ({ x0: 0, x1: lastOf(state.axis), y0: 0, y1: highest * 1.06 });
  const plotWidth = () => Math.max(1, frame.width - margin.left - margin.right);
  const plotHeight = () => Math.max(1, frame.height - margin.top - margin.bottom);
  const toX = (value) =>
    margin.left + (value - state.view.x0) / (state.view.x1 - state.view.x0) * plotWidth();
  const toY = (bytes) =>
    margin.top + (1 - (bytes - state.view.y0) / (state.view.y1 - state.view.y0)) * plotHeight();
  const fromX = (x) =>
    state.view.x0 + (x - margin.left) / plotWidth() * (state.view.x1 - state.view.x0);
  const fromY = (y) =>
    state.view.y0 + (1 - (y - margin.top) / plotHeight()) * (state.view.y1 - state.view.y0);

  // The last tick that is not after a value.
  function lastNotAfter(axis, value) {
    let low = 0;
    let high = tickCount - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (axis[middle] <= value) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  // --- Drawing -----------------------------------------------------------------------------------

  const packed = ([r, g, b]) => (0xff000000 | b << 16 | g << 8 | r) >>> 0;
  const mix = (a, b, part) => a.map((v, i) => Math.round(v + (b[i] - v) * part));

  function makePaint() {
    const card = fromHex(themeColour('--card'));
    const ink = darkScheme.matches ? [0, 0, 0] : [20, 30, 50];
    const of = {
      group: (i) => groupColour(blocks.group[i]),
      size: (i) => sizeColour(blocks.size[i]),
      stream: (i) => streamColour(blocks.stream[i]),
    }[state.paintName];
    const seen = new Map();  // most blocks share a colour
    paint = {
      body: new Uint32Array(blocks.count),
      edge: new Uint32Array(blocks.count),
      small: packed(mix(card, [128, 140, 155], 0.45)),
      smallDark: packed(mix(card, [128, 140, 155], 0.7)),
      nothing: packed(card),
    };
    for (let i = 0; i < blocks.count; ++i) {
      const by = { group: 0, size: blocks.size[i], stream: blocks.stream[i] }[state.paintName];
      const key = `${blocks.group[i]} ${by}`;
      let pair = seen.get(key);
      if (pair === undefined) {
        let colour = of(i);
        if (state.group !== null && blocks.group[i] !== state.group) colour = mix(colour, card, 0.84);
        pair = [packed(colour), packed(mix(colour, ink, 0.28))];
        seen.set(key, pair);
      }
      paint.body[i] = pair[0];
      paint.edge[i] = pair[1];
    }
  }

  function drawBlocks() {
    const { context, ratio, width, height } = fitCanvas(base);
    frame = { width, height, ratio };
    if (paint === null) makePaint();
    const columns = Math.max(1, Math.round(plotWidth() * ratio));
    const rows = Math.max(1, Math.round(plotHeight() * ratio));
    if (raster === null || raster.width !== columns || raster.height !== rows) {
      raster = new Raster(columns, rows);
    }
    raster.draw(state.axis, state.view, paint);
    context.putImageData(raster.image, Math.round(margin.left * ratio), Math.round(margin.top * ratio));
    overlay.dataset.from = state.view.x0;
    overlay.dataset.to = state.view.x1;
  }

  function steps(range, count, base) {
    const rough = range / count;
    let unit = 1;
    while (unit * base <= rough) unit *= base;
    for (const by of base === 10 ? [1, 2, 5, 10] : [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]) {
      if (unit * by >= rough) return unit * by;
    }
    return unit * base;
  }

  function drawAxes(context) {
    const { view } = state;
    const bottom = margin.top + plotHeight() + lane;
    context.font = '12px system-ui, sans-serif';
    context.fillStyle = themeColour('--quiet');
    context.strokeStyle = themeColour('--line');
    context.lineWidth = 1;
    const step = steps(view.y1 - view.y0, plotHeight() / 56, 1024);
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    for (let y = Math.ceil(view.y0 / step) * step; y <= view.y1; y += step) {
      const at = Math.round(toY(y)) + 0.5;
      context.globalAlpha = 0.55;
      context.beginPath();
      context.moveTo(margin.left, at);
      context.lineTo(margin.left + plotWidth(), at);
      context.stroke();
      context.globalAlpha = 1;
      context.fillText(formatBytes(y), margin.left - 8, at);
    }
    const width = steps(view.x1 - view.x0, plotWidth() / 110, 10);
    context.textBaseline = 'top';
    for (let x = Math.ceil(view.x0 / width) * width; x <= view.x1; x += width) {
      const at = toX(x);
      const text = state.axisName === 'time' ? formatDuration(x) : formatCount(x);
      const half = context.measureText(text).width / 2;
      context.textAlign = 'center';
      context.fillText(text, Math.min(Math.max(at, margin.left + half), frame.width - half), bottom + 8);
      context.beginPath();
      context.moveTo(Math.round(at) + 0.5, bottom);
      context.lineTo(Math.round(at) + 0.5, bottom + 5);
      context.stroke();
    }
    context.beginPath();
    context.moveTo(margin.left, bottom + 0.5);
    context.lineTo(margin.left + plotWidth(), bottom + 0.5);
    context.stroke();
  }

  // A level that holds until the next tick. `tickOf(i)` and `valueOf(i)` for i below `count`.
  function drawSteps(context, count, tickOf, valueOf, colour, dashed) {
    context.strokeStyle = colour;
    context.lineWidth = 2;
    context.setLineDash(dashed ? [6, 4] : []);
    context.beginPath();
    let started = false;
    let last = 0;
    for (let i = 0; i < count; ++i) {
      const x = toX(state.axis[tickOf(i)]);
      const y = toY(valueOf(i));
      if (!started) {
        context.moveTo(x, y);
        started = true;
      } else if (x >= margin.left - 5 || i + 1 === count) {
        context.lineTo(x, last);
        context.lineTo(x, y);
        if (x > margin.left + plotWidth() + 5) break;
      } else {
        context.moveTo(x, y);
      }
      last = y;
    }
    context.lineTo(Math.max(toX(state.axis[tickCount - 1]), margin.left), last);
    context.stroke();
    context.setLineDash([]);
  }

  function drawLines(context) {
    context.save();
    context.beginPath();
    context.rect(margin.left, margin.top - 2, plotWidth(), plotHeight() + 2);
    context.clip();
    if (shownLines.has('recorded')) {
      const changes = reservedChanges;
      drawSteps(context, changes.length, (i) => changes[i], (i) => ticks.reserved[changes[i]],
        themeColour('--recorded'), false);
    }
    replays.forEach((row, index) => {
      if (!shownLines.has(index)) return;
      drawSteps(context, row.tick.length, (i) => row.tick[i], (i) => row.reserved[i],
        index === 0 ? themeColour('--keel') : themeColour('--accent'), index > 0);
    });
    context.restore();
  }

  // What the program named, by ticks, so that they have a place on either axis.
  const phaseNames = [...new Set(raw.phases.map(([name]) => name))];
  const phases = raw.phases.map(([name, from, to]) => ({
    name, number: phaseNames.indexOf(name), from: lastNotAfter(ticks.time, from), to: lastNotAfter(ticks.time, to),
  }));

  const reservedChanges = [];
  for (let i = 0; i < tickCount; ++i) {
    if (i === 0 || ticks.reserved[i] !== ticks.reserved[i - 1]) reservedChanges.push(i);
  }

  function label(context, text, x, y, colour, align) {
    context.font = '600 12px system-ui, sans-serif';
    context.textAlign = align;
    context.textBaseline = 'middle';
    const width = context.measureText(text).width + 12;
    const left = Math.min(Math.max(align === 'right' ? x - width : align === 'center' ? x - width / 2 : x,
      margin.left), frame.width - width);
    context.fillStyle = themeColour('--card');
    context.globalAlpha = 0.9;
    context.beginPath();
    context.roundRect(left, y - 10, width, 20, 5);
    context.fill();
    context.globalAlpha = 1;
    context.fillStyle = colour;
    context.textAlign = 'left';
    context.fillText(text, left + 6, y + 0.5);
  }

  function verticalLine(context, tick, colour, dash) {
    const x = Math.round(toX(state.axis[tick])) + 0.5;
    if (x < margin.left - 1 || x > margin.left + plotWidth() + 1) return null;
    context.strokeStyle = colour;
    context.lineWidth = 1.25;
    context.setLineDash(dash);
    context.beginPath();
    context.moveTo(x, margin.top - 4);
    context.lineTo(x, margin.top + plotHeight());
    context.stroke();
    context.setLineDash([]);
    return x;
  }

  function drawMarks(context) {
    const ink = themeColour('--ink');
    for (const phase of phases) {
      const left = Math.max(toX(state.axis[phase.from]), margin.left);
      const right = Math.min(toX(state.axis[phase.to]), margin.left + plotWidth());
      if (right < left) continue;
      context.fillStyle = css(streamColour(phase.number));
      context.fillRect(left, margin.top + plotHeight() + 2, Math.max(right - left, 2), lane - 3);
    }
    for (const tick of raw.out_of_memory) verticalLine(context, tick, themeColour('--recorded'), []);
    const peak = verticalLine(context, raw.peak, ink, [3, 3]);
    if (peak !== null) {
      label(context, `peak ${formatBytes(raw.recorded.peak_requested)}`, peak, margin.top - 11, ink, 'center');
    }
    if (state.cursor !== raw.peak) verticalLine(context, state.cursor, themeColour('--accent'), []);
  }

  // The pixels of one block, lit up.
  function drawBlock(context, block, strong) {
    if (block < 0 || raster === null) return;
    const { ratio } = frame;
    const first = Math.max(0, Math.floor((toX(state.axis[blocks.start[block]]) - margin.left) * ratio) - 1);
    const end = blocks.end[block] >= tickCount ? raster.width
      : (toX(state.axis[blocks.end[block]]) - margin.left) * ratio + 1;
    const last = Math.min(raster.width, Math.ceil(end) + 1);
    const colour = themeColour('--ink');
    for (let x = first; x < last; ++x) {
      const rows = raster.rowsOf(block, x);
      if (rows === null) continue;
      const left = margin.left + x / ratio;
      const y = margin.top + rows[0] / ratio;
      const height = (rows[1] - rows[0]) / ratio;
      context.fillStyle = colour;
      context.globalAlpha = strong ? 0.3 : 0.16;
      context.fillRect(left, y, 1 / ratio, height);
      context.globalAlpha = strong ? 1 : 0.6;
      const line = strong ? 1.5 : 1;
      context.fillRect(left, y, 1 / ratio, Math.min(line, height));
      context.fillRect(left, y + height - Math.min(line, height), 1 / ratio, Math.min(line, height));
    }
    context.globalAlpha = 1;
  }

  function drawOverlay() {
    const { context } = fitCanvas(overlay);
    context.clearRect(0, 0, frame.width, frame.height);
    drawAxes(context);
    drawBlock(context, state.hovered, false);
    drawBlock(context, state.selected, true);
    drawLines(context);
    drawMarks(context);
    const right = margin.left + plotWidth() - 4;
    const place = (bytes) => Math.min(Math.max(toY(bytes) - 12, margin.top + 10), margin.top + plotHeight() - 10);
    if (shownLines.has('recorded')) {
      label(context, `reserved as recorded: ${formatBytes(raw.recorded.peak_reserved)}`, right,
        place(raw.recorded.peak_reserved), themeColour('--recorded'), 'right');
    }
    if (replays.length > 0 && shownLines.has(0)) {
      label(context, `reserved by ${replays[0].name}: ${formatBytes(replays[0].peak_reserved)}`, right,
        place(replays[0].peak_reserved), themeColour('--keel'), 'right');
    }
    if (state.marked !== null) {
      context.fillStyle = themeColour('--accent');
      context.globalAlpha = 0.2;
      const [from, to] = state.marked;
      context.fillRect(Math.min(from, to), margin.top, Math.abs(to - from), plotHeight());
      context.globalAlpha = 1;
    }
  }

  function drawOverview() {
    const { context, width, height } = fitCanvas(overview);
    context.clearRect(0, 0, width, height);
    const w = plotWidth();
    const span = lastOf(state.axis);
    const y = (bytes) => height - 4 - bytes / (highest * 1.06) * (height - 8);
    const most = new Float64Array(Math.ceil(w));
    let level = 0;
    let tick = 0;
    for (let x = 0; x < most.length; ++x) {
      let top = level;
      while (tick < tickCount && state.axis[tick] <= span * (x + 1) / w) {
        level = ticks.requested[tick++];
        top = Math.max(top, level);
      }
      most[x] = top;
    }
    context.fillStyle = themeColour('--quiet');
    context.globalAlpha = 0.55;
    context.beginPath();
    context.moveTo(margin.left, y(0));
    most.forEach((bytes, x) => context.lineTo(margin.left + x, y(bytes)));
    context.lineTo(margin.left + w, y(0));
    context.fill();
    context.globalAlpha = 1;
    const from = margin.left + state.view.x0 / span * w;
    const to = margin.left + state.view.x1 / span * w;
    context.fillStyle = themeColour('--card');
    context.globalAlpha = 0.6;
    context.fillRect(margin.left, 0, Math.max(0, from - margin.left), height);
    context.fillRect(to, 0, Math.max(0, margin.left + w - to), height);
    context.globalAlpha = 1;
    context.strokeStyle = themeColour('--accent');
    context.lineWidth = 1.5;
    context.strokeRect(from + 0.75, 0.75, Math.max(3, to - from - 1.5), height - 1.5);
  }

  let pending = { blocks: false, overlay: false };
  function redraw(what) {
    if (!pending.blocks && !pending.overlay) {
      requestAnimationFrame(() => {
        const todo = pending;
        pending = { blocks: false, overlay: false };
        if (todo.blocks) {
          drawBlocks();
          drawOverview();
        }
        drawOverlay();
      });
    }
    pending[what] = true;
  }

  // --- Moving ------------------------------------------------------------------------------------

  function setView(view) {
    const whole = everything();
    // A stretch of one event, or of a tenth of a microsecond, is as near as one gets.
    const least = Math.min(whole.x1, state.axisName === 'time' ? 0.1 : 1);
    const width = Math.min(Math.max(view.x1 - view.x0, least), whole.x1);
    const height = Math.min(Math.max(view.y1 - view.y0, Math.min(highest, 64)), whole.y1);
    const x0 = Math.min(Math.max(view.x0, 0), whole.x1 - width);
    const y0 = Math.min(Math.max(view.y0, 0), whole.y1 - height);
    state.view = { x0, x1: x0 + width, y0, y1: y0 + height };
    redraw('blocks');
  }

  function zoomX(factor, at = (state.view.x0 + state.view.x1) / 2) {
    const { view } = state;
    setView({ ...view, x0: at - (at - view.x0) * factor, x1: at + (view.x1 - at) * factor });
  }

  function zoomY(factor, at) {
    const { view } = state;
    setView({ ...view, y0: at - (at - view.y0) * factor, y1: at + (view.y1 - at) * factor });
  }

  function pan(part) {
    const by = (state.view.x1 - state.view.x0) * part;
    setView({ ...state.view, x0: state.view.x0 + by, x1: state.view.x1 + by });
  }

  function reset() {
    setView(everything());
  }

  // A window of a twentieth around a tick.
  function showTick(tick) {
    const half = lastOf(state.axis) / 40;
    const at = state.axis[tick];
    setView({ ...everything(), x0: at - half, x1: at + half });
  }

  function reveal(block) {
    const { view } = state;
    const from = state.axis[blocks.start[block]];
    const to = state.axis[Math.min(blocks.end[block], tickCount - 1)];
    if (to < view.x0 || from > view.x1) {
      const width = view.x1 - view.x0;
      setView({ ...view, x0: from - width / 3, x1: from + width * 2 / 3 });
    }
  }

  function setCursor(tick) {
    state.cursor = tick;
    listeners.forEach((listener) => listener('cursor'));
    redraw('overlay');
  }

  function select(block) {
    state.selected = block;
    listeners.forEach((listener) => listener('selection'));
    redraw('overlay');
  }

  function setGroup(group) {
    state.group = state.group === group ? null : group;
    paint = null;
    listeners.forEach((listener) => listener('group'));
    redraw('blocks');
  }

  // The one above or below the selected one, at the cursor.
  function selectNeighbour(by) {
    const live = [];
    for (let i = 0; i < blocks.count && blocks.start[i] <= state.cursor; ++i) {
      if (blocks.end[i] > state.cursor) live.push(i);
    }
    if (live.length === 0) return;
    const at = live.indexOf(state.selected);
    select(live[at < 0 ? (by > 0 ? 0 : live.length - 1) : Math.min(Math.max(at + by, 0), live.length - 1)]);
  }

  function selectOfSameGroup(by) {
    const from = state.selected < 0 ? (by > 0 ? -1 : blocks.count) : state.selected;
    for (let i = from + by; i >= 0 && i < blocks.count; i += by) {
      if (state.selected >= 0 && blocks.group[i] !== blocks.group[state.selected]) continue;
      state.cursor = blocks.start[i];
      select(i);
      reveal(i);
      return;
    }
  }

  function blockAt(x, y) {
    if (raster === null) return kNothing;
    return raster.idAt(Math.floor((x - margin.left) * frame.ratio), Math.floor((y - margin.top) * frame.ratio));
  }

  function hover(x, y) {
    const block = blockAt(x, y);
    const under = y > margin.top + plotHeight() && y < margin.top + plotHeight() + lane
      ? phases.findLast((each) => x >= toX(state.axis[each.from]) - 3 && x <= toX(state.axis[each.to]) + 3) : undefined;
    if (under !== undefined) {
      showTip(tip, stage, x, y, under.name,
        `for ${formatDuration(ticks.time[under.to] - ticks.time[under.from])}, at ${formatDuration(ticks.time[under.from])}`);
    } else if (block === kNothing) {
      tip.hidden = true;
    } else {
      const tick = raster.tickOfColumn[Math.floor((x - margin.left) * frame.ratio)];
      const when = `at ${formatDuration(ticks.time[tick])}, event ${formatCount(ticks.event[tick])}; ` +
        `${formatBytes(ticks.requested[tick])} requested`;
      if (block === kSmall) {
        showTip(tip, stage, x, y, `${formatCount(ticks.smallBlocks[tick])} small blocks`,
          `${formatBytes(ticks.smallBytes[tick])} in blocks below ${formatBytes(raw.small.below)}`, when);
      } else {
        showTip(tip, stage, x, y, formatBytes(blocks.size[block]), raw.groups[blocks.group[block]][0],
          `lives for ${lifetime(block)}`, when);
      }
    }
    if (block !== state.hovered) {
      state.hovered = block;
      redraw('overlay');
    }
  }

  function lifetime(block) {
    const never = blocks.end[block] >= tickCount;
    const us = ticks.time[never ? tickCount - 1 : blocks.end[block]] - ticks.time[blocks.start[block]];
    return formatDuration(us) + (never ? ' and on' : '');
  }

  const pointers = new Map();
  let drag = null;

  function position(event) {
    const box = overlay.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  overlay.addEventListener('wheel', (event) => {
    if (event.ctrlKey && event.deltaY === 0) return;
    event.preventDefault();
    const [x, y] = position(event);
    const turned = event.deltaY !== 0 ? event.deltaY : event.deltaX;
    const factor = Math.exp(Math.max(-1, Math.min(1, turned * (event.deltaMode === 1 ? 0.05 : 0.002))));
    if (event.shiftKey) zoomY(factor, fromY(y));
    else if (event.deltaY === 0) pan(event.deltaX / plotWidth());
    else zoomX(factor, fromX(x));
  }, { passive: false });

  overlay.addEventListener('pointerdown', (event) => {
    overlay.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, position(event));
    const [x, y] = position(event);
    drag = { x, y, view: state.view, moved: false, marks: event.shiftKey, apart: null };
    if (pointers.size === 2) {
      const [a, b] = [...pointers.values()];
      drag.apart = Math.max(20, Math.abs(a[0] - b[0]));
      drag.middle = fromX((a[0] + b[0]) / 2);
      drag.moved = true;
    }
    tip.hidden = true;
  });

  overlay.addEventListener('pointermove', (event) => {
    const [x, y] = position(event);
    if (drag === null) {
      hover(x, y);
      return;
    }
    pointers.set(event.pointerId, [x, y]);
    if (pointers.size === 2 && drag.apart !== null) {
      const [a, b] = [...pointers.values()];
      const factor = drag.apart / Math.max(20, Math.abs(a[0] - b[0]));
      setView({ ...drag.view, x0: drag.middle - (drag.middle - drag.view.x0) * factor,
        x1: drag.middle + (drag.view.x1 - drag.middle) * factor });
      return;
    }
    if (!drag.moved && Math.hypot(x - drag.x, y - drag.y) < 4) return;
    drag.moved = true;
    if (drag.marks) {
      state.marked = [drag.x, x];
      redraw('overlay');
      return;
    }
    overlay.classList.add('moving');
    const byX = (drag.x - x) / plotWidth() * (drag.view.x1 - drag.view.x0);
    const byY = (y - drag.y) / plotHeight() * (drag.view.y1 - drag.view.y0);
    setView({ x0: drag.view.x0 + byX, x1: drag.view.x1 + byX, y0: drag.view.y0 + byY, y1: drag.view.y1 + byY });
  });

  function release(event) {
    pointers.delete(event.pointerId);
    overlay.classList.remove('moving');
    if (drag === null) return;
    const ended = drag;
    drag = null;
    if (state.marked !== null) {
      const [from, to] = state.marked.map(fromX).sort((a, b) => a - b);
      state.marked = null;
      setView({ ...state.view, x0: from, x1: to });
      return;
    }
    if (ended.moved || event.type === 'pointercancel') return;
    setCursor(raster.tickOfColumn[Math.min(Math.max(Math.floor((ended.x - margin.left) * frame.ratio), 0),
      raster.width - 1)]);
    select(blockAt(ended.x, ended.y));
  }
  overlay.addEventListener('pointerup', release);
  overlay.addEventListener('pointercancel', release);
  overlay.addEventListener('pointerleave', () => {
    tip.hidden = true;
    state.hovered = kNothing;
    redraw('overlay');
  });

  const keys = {
    ArrowLeft: () => pan(-0.15),
    ArrowRight: () => pan(0.15),
    ArrowUp: () => selectNeighbour(1),
    ArrowDown: () => selectNeighbour(-1),
    '+': () => zoomX(1 / 1.5),
    '=': () => zoomX(1 / 1.5),
    '-': () => zoomX(1.5),
    0: reset,
    p: () => { setCursor(raw.peak); showTick(raw.peak); },
    '[': () => selectOfSameGroup(-1),
    ']': () => selectOfSameGroup(1),
    Escape: () => { select(kNothing); if (state.group !== null) setGroup(state.group); },
  };
  overlay.addEventListener('keydown', (event) => {
    const action = keys[event.key] ?? keys[event.key.toLowerCase()];
    if (action === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  });

  // In the overview one moves the window, or marks a new one.
  function overviewValue(event) {
    const x = event.clientX - overview.getBoundingClientRect().left;
    return Math.min(Math.max((x - margin.left) / plotWidth(), 0), 1) * lastOf(state.axis);
  }
  let brush = null;
  overview.addEventListener('pointerdown', (event) => {
    overview.setPointerCapture(event.pointerId);
    const at = overviewValue(event);
    const { view } = state;
    const whole = view.x1 - view.x0 >= lastOf(state.axis) * 0.999;
    brush = { at, view, moves: !whole && at >= view.x0 && at <= view.x1, moved: false };
  });
  overview.addEventListener('pointermove', (event) => {
    if (brush === null) return;
    const at = overviewValue(event);
    if (Math.abs(at - brush.at) / lastOf(state.axis) * plotWidth() < 3 && !brush.moved) return;
    brush.moved = true;
    const { view } = brush;
    if (brush.moves) setView({ ...view, x0: view.x0 + at - brush.at, x1: view.x1 + at - brush.at });
    else setView({ ...view, x0: Math.min(at, brush.at), x1: Math.max(at, brush.at) });
  });
  overview.addEventListener('pointerup', () => {
    if (brush !== null && !brush.moved && !brush.moves) {
      const half = (brush.view.x1 - brush.view.x0) / 2;
      setView({ ...brush.view, x0: brush.at - half, x1: brush.at + half });
    }
    brush = null;
  });

  return {
    state,
    phaseNames,
    shownLines,
    select,
    setCursor,
    setGroup,
    lifetime,
    listen: (listener) => listeners.push(listener),
    redraw: () => redraw('overlay'),
    repaint: () => { paint = null; redraw('blocks'); },
    zoomX,
    reset,
    showPeak: keys.p,
    // Keeps what is shown, as far as the other axis has it.
    setAxis(name) {
      const from = lastNotAfter(state.axis, state.view.x0);
      const to = Math.min(lastNotAfter(state.axis, state.view.x1) + 1, tickCount - 1);
      const whole = state.view.x1 - state.view.x0 >= lastOf(state.axis) * 0.999;
      state.axisName = name;
      state.axis = ticks[name];
      if (whole) reset();
      else setView({ ...state.view, x0: state.axis[from], x1: state.axis[to] });
    },
    setPaint(name) {
      state.paintName = name;
      paint = null;
      redraw('blocks');
    },
    start: reset,
  };
})();
