// The tables and the texts, and what ties the parts together.
'use strict';

function addFigures() {
  const add = (name, value, note, tone) => {
    const number = element('dd', {}, value);
    if (note) number.append(element('small', {}, note));
    const box = element('div', {}, element('dt', {}, name), number);
    if (tone) box.style.setProperty('--tone', `var(${tone})`);
    byId('figures').append(box);
  };
  const { recorded } = raw;
  add('Requested at most', formatBytes(recorded.peak_requested), '', '--accent');
  if (knowsReserved) {
    add('Reserved, as recorded', formatBytes(recorded.peak_reserved),
      formatExcess(recorded.peak_reserved, recorded.peak_requested), '--recorded');
  }
  if (replays.length > 0) {
    add(`Reserved by ${replays[0].name}`, formatBytes(replays[0].peak_reserved),
      replays[0].ooms > 0 ? 'did not fit' : formatExcess(replays[0].peak_reserved, replays[0].peak_requested),
      '--keel');
  }
  const parts = [raw.file, `device ${recorded.device}`];
  if (hasHistory) {
    parts.push(`${formatCount(recorded.events)} events`, formatSpan(recorded.duration_us),
      `${recorded.streams} stream${recorded.streams === 1 ? '' : 's'}`);
  }
  if (recorded.configuration) parts.push(recorded.configuration);
  byId('origin').textContent = parts.join(' \u00b7 ');
  byId('made').textContent = `Written by keel ${raw.version}. This page is one file and asks nothing of a network.`;
}

function addLegend() {
  const list = byId('legend');
  const line = (key, text, colour, dashed) => {
    const box = element('input', { type: 'checkbox' });
    box.checked = timeline.shownLines.has(key);
    box.addEventListener('change', () => {
      if (box.checked) timeline.shownLines.add(key);
      else timeline.shownLines.delete(key);
      timeline.redraw();
    });
    const stroke = element('span', { class: dashed ? 'stroke dashed' : 'stroke',
      style: { borderTopColor: `var(${colour})` } });
    list.append(element('li', {}, element('label', {}, box, stroke, text)));
  };
  if (knowsReserved) line('recorded', 'Reserved, as recorded', '--recorded', false);
  replays.forEach((row, index) =>
    line(index, `Reserved by ${row.name}`, index === 0 ? '--keel' : '--accent', index > 0));
  timeline.phaseNames.slice(0, 4).forEach((name, number) =>
    list.append(element('li', {}, element('span', { class: 'swatch', style: { background: css(streamColour(number)),
      height: '6px', borderRadius: '2px' } }), name.slice(0, 60))));
  if (raw.small.blocks > 0) {
    list.append(element('li', {}, element('span', { class: 'swatch hatch' }),
      `${formatCount(raw.small.blocks)} of ${formatCount(raw.small.blocks + blocks.count)} blocks are below ` +
      `${formatBytes(raw.small.below)}: one band`));
  }
}

function showDetails() {
  const box = byId('details');
  const block = timeline.state.selected;
  if (block < 0) {
    box.replaceChildren(element('p', { class: 'quiet' }, block === kSmall
      ? `Small blocks, below ${formatBytes(raw.small.below)}, are drawn as one band. ` +
        'Write the page with a smaller --small to see them one by one.'
      : 'Click a block to see what it is. Wheel to zoom, drag to move.'));
    return;
  }
  const facts = element('dl');
  const fact = (name, value, mono) =>
    facts.append(element('div', {}, element('dt', {}, name), element('dd', mono ? { class: 'mono' } : {}, value)));
  const at = (tick) => `${formatMoment(ticks.time[tick])}, event ${formatCount(ticks.event[tick])}`;
  const end = blocks.end[block];
  const given = blocks.givenBack[block];
  const group = blocks.group[block];
  const dot = element('span', { class: 'swatch', style: { background: css(groupColour(group)), marginRight: '7px' } });
  fact('Size', `${formatBytes(blocks.size[block])} (${formatCount(blocks.size[block])} bytes)`);
  const origin = element('span', {}, dot, raw.groups[group][0]);
  fact('Origin', origin);
  fact('Address', formatAddress(blocks.address[block]), true);
  fact('Stream', raw.streams[blocks.stream[block]], true);
  fact('Allocated', blocks.start[block] === 0 ? 'before the recording' : at(blocks.start[block]));
  fact('Freed', end >= tickCount ? 'not in the recording' : at(end));
  if (given > 0 && (end >= tickCount || given - 1 < ticks.time[end])) fact('Given back', formatMoment(given - 1));
  fact('Lived', timeline.lifetime(block));
  if (blocks.tag[block] > 0) fact('Tag', raw.tags[blocks.tag[block]]);
  box.replaceChildren(facts);
  const frames = raw.stacks.list[blocks.stack[block]];
  if (frames.length > 0) {
    box.append(element('ol', { 'aria-label': 'Stack, the innermost frame first', tabindex: '0' },
      ...frames.map((index) => {
        const [name, file, line] = raw.stacks.frames[index];
        return element('li', {}, name || '(unknown)', ' ',
          element('span', {}, file ? `${file}${line > 0 ? `:${line}` : ''}` : ''));
      })));
  }
}

const kFirstGroups = 12;

function fillPeak(all) {
  const { list, rest } = raw.peak_groups;
  const total = raw.recorded.peak_requested;
  const rows = (all ? list : list.slice(0, kFirstGroups)).map(([group, bytes, count]) => {
    const colour = css(groupColour(group));
    const percent = total > 0 ? 100 * bytes / total : 0;
    const row = element('tr', { tabindex: '0', role: 'button', 'aria-pressed': String(timeline.state.group === group) },
      element('td', {}, element('span', { class: 'origin' },
        element('span', { class: 'swatch', style: { background: colour } }), element('span', {}, raw.groups[group][0]))),
      element('td', { class: 'n', 'data-bytes': String(bytes) }, formatBytes(bytes)),
      element('td', { class: 'n share' },
        element('i', { style: { background: colour, width: `${percent}%` } }), `${percent.toFixed(1)} %`),
      element('td', { class: 'n' }, formatCount(count)));
    row.addEventListener('click', () => timeline.setGroup(group));
    row.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' && event.key !== ' ') return;
      event.preventDefault();
      timeline.setGroup(group);
      byId('peak-table').querySelector('[aria-pressed="true"]')?.focus();
    });
    return row;
  });
  if (all && rest.groups > 0) {
    rows.push(element('tr', {}, element('td', {}, `${formatCount(rest.groups)} more`),
      element('td', { class: 'n' }, formatBytes(rest.bytes)), element('td'),
      element('td', { class: 'n' }, formatCount(rest.blocks))));
  }
  byId('peak-table').tBodies[0].replaceChildren(...rows);
  const more = byId('peak-more');
  const count = list.length + rest.groups;
  more.hidden = count <= kFirstGroups;
  more.textContent = all ? `Show the largest ${kFirstGroups}` : `Show all ${formatCount(count)}`;
  more.dataset.all = all ? '1' : '';
}

function describePeak() {
  const kinds = new Set(raw.peak_groups.list.map(([group]) => raw.groups[group][1]));
  const by = [kinds.has('frame') && 'the frame that asked for them', kinds.has('tag') && 'tag', kinds.has('size') &&
    'size'].filter(Boolean).join(' or ');
  const count = raw.peak_groups.list.reduce((sum, row) => sum + row[2], raw.peak_groups.rest.blocks);
  const when = hasHistory ? `At ${formatDuration(ticks.time[raw.peak])}, event ${formatCount(ticks.event[raw.peak])}: ` : '';
  byId('peak-text').textContent = `${when}${formatCount(count)} live blocks with ` +
    `${formatBytes(raw.recorded.peak_requested)}, by ${by || 'size'}. Choose a row to see it in the timeline.`;
}

function fillReplays() {
  const { recorded } = raw;
  const rows = replays.map((row, index) => ({ ...row, tone: index === 0 ? '--keel' : '--accent', job: row.driver_us }));
  if (knowsReserved) {
    rows.unshift({ name: recordedName + (recorded.configuration ? `, ${recorded.configuration}` : ''),
      peak_requested: recorded.peak_requested, peak_reserved: recorded.peak_reserved, ooms: recorded.out_of_memory,
      tone: '--recorded', recorded: true });
  }
  const most = Math.max(...rows.map((row) => row.peak_reserved), 1);
  const fits = rows.filter((row) => !(row.ooms > 0));
  const best = Math.min(...fits.map((row) => row.peak_reserved));
  const bytes = (value, more = '') => value === undefined ? element('td', { class: 'n' }, '-')
    : element('td', { class: `n ${more}`, 'data-bytes': String(value) }, formatBytes(value));
  byId('replays-table').tBodies[0].replaceChildren(...rows.map((row) => {
    const colour = `var(${row.tone})`;
    const part = (value) => `${100 * value / most}%`;
    const gauge = element('div', { class: 'gauge', 'aria-hidden': 'true' },
      element('i', { class: 'wasted', style: { background: colour, width: part(row.peak_reserved) } }),
      element('i', { style: { background: colour, width: part(Math.min(row.peak_requested, row.peak_reserved)) } }));
    const job = row.recorded || !(row.recorded_us > 0) ? '' : ` (${(100 * row.driver_us / row.recorded_us).toFixed(2)} %)`;
    return element('tr', { class: row.recorded ? 'recorded' : '', 'data-conf': row.recorded ? '' : row.conf },
      element('td', {}, row.name), element('td', {}, gauge), bytes(row.peak_requested), bytes(row.peak_allocated),
      bytes(row.peak_reserved, row.peak_reserved === best && rows.length > 1 ? 'best' : ''),
      element('td', { class: 'n' }, row.ooms > 0 ? '-' : formatRatio(row.peak_reserved, row.peak_requested)),
      element('td', { class: row.ooms > 0 ? 'n worst' : 'n' }, formatCount(row.ooms)),
      element('td', { class: 'n' }, row.recorded ? '-' : formatDuration(row.driver_us) + job));
  }));
  const before = recorded.requested_at_start > 0
    ? ` ${formatBytes(recorded.requested_at_start)} were there before the recording began: the replays are without them.` : '';
  const lag = replays.length > 0 ? ` Work is done ${formatDuration(replays[0].lag_us)} after it was queued.` : '';
  byId('replays-text').textContent = 'The history, sent request by request through Keel\u2019s allocator, as keel replay ' +
    `does. Pale: reserved beyond what was requested. Driver: time in calls that manage memory, and its part of the job.${lag}${before}`;
}

function addMoments() {
  if (!segmentMap.known) {
    byId('segments-text').textContent = 'The recording has no segments: this kind of file does not tell what the allocator held.';
    byId('map-stage').hidden = true;
    byId('segments-list').hidden = true;
    byId('moment').hidden = true;
    return;
  }
  const names = { peak: 'Peak', end: 'End', cursor: 'Cursor' };
  const offered = segmentMap.pictures.map((picture) => picture.name);
  if (segmentMap.hasCursor) offered.push('cursor');
  offered.forEach((name, index) => {
    const input = element('input', { type: 'radio', name: 'moment', value: name });
    input.checked = index === 0;
    input.addEventListener('change', () => segmentMap.show(name));
    byId('moment').append(element('label', {}, input, names[name]));
  });
}

function connect() {
  byId('zoom-in').addEventListener('click', () => timeline.zoomX(1 / 1.8));
  byId('zoom-out').addEventListener('click', () => timeline.zoomX(1.8));
  byId('to-peak').addEventListener('click', timeline.showPeak);
  byId('reset').addEventListener('click', timeline.reset);
  byId('axis').addEventListener('change', (event) => timeline.setAxis(event.target.value));
  byId('paint').addEventListener('change', (event) => timeline.setPaint(event.target.value));
  byId('peak-more').addEventListener('click', (event) => fillPeak(event.target.dataset.all === ''));
  timeline.listen((what) => {
    if (what === 'selection') showDetails();
    if (what === 'group') fillPeak(byId('peak-more').dataset.all === '1');
    if (what === 'cursor' && document.querySelector('input[name="moment"]:checked')?.value === 'cursor') {
      segmentMap.show('cursor');
    }
  });
  const repaint = () => {
    timeline.repaint();
    segmentMap.draw();
    fillPeak(byId('peak-more').dataset.all === '1');
    showDetails();
  };
  darkScheme.addEventListener('change', repaint);
  let width = window.innerWidth;
  window.addEventListener('resize', () => {
    timeline.repaint();
    if (window.innerWidth !== width) segmentMap.draw();
    width = window.innerWidth;
  });
}

addFigures();
addMoments();
addLegend();
describePeak();
fillPeak(false);
fillReplays();
if (hasHistory) {
  byId('overlay').setAttribute('aria-label', `Live blocks over time. ${byId('summary').textContent}`);
  timeline.start();
  showDetails();
} else {
  byId('timeline').hidden = true;
}
if (replays.length === 0 && !knowsReserved) byId('replays').hidden = true;
if (segmentMap.known) segmentMap.draw();
connect();
document.documentElement.dataset.ready = '1';
