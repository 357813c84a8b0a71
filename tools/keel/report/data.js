// The data of the page, and how numbers are written. See report_page.cc for what is in them.
'use strict';

const raw = JSON.parse(document.getElementById('data').textContent);

function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  return bytes;
}

// A column of plain numbers. Beyond 2^53 they are not exact, which no real recording reaches.
function numbers(base64) {
  const out = [];
  let value = 0;
  let scale = 1;
  for (const byte of bytesOf(base64)) {
    value += (byte & 0x7f) * scale;
    if (byte & 0x80) {
      scale *= 128;
    } else {
      out.push(value);
      value = 0;
      scale = 1;
    }
  }
  return Float64Array.from(out);
}

// A column of changes.
function sums(base64) {
  const out = numbers(base64);
  let value = 0;
  for (let i = 0; i < out.length; ++i) {
    const change = out[i] % 2 === 0 ? out[i] / 2 : -(out[i] + 1) / 2;
    value += change;
    out[i] = value;
  }
  return out;
}

const ticks = {
  event: sums(raw.ticks.event),
  time: sums(raw.ticks.time),
  requested: sums(raw.ticks.requested),
  reserved: sums(raw.ticks.reserved),
  smallBytes: sums(raw.ticks.small_bytes),
  smallBlocks: sums(raw.ticks.small_blocks),
};
const tickCount = ticks.event.length;

// What never ends has the tick after the last one.
function ends(base64) {
  const out = sums(base64);
  for (let i = 0; i < out.length; ++i) out[i] = out[i] === 0 ? tickCount : out[i] - 1;
  return out;
}

const blocks = {
  count: raw.blocks.count,
  start: sums(raw.blocks.start),
  end: ends(raw.blocks.end),
  givenBack: numbers(raw.blocks.given_back),
  size: numbers(raw.blocks.size),
  address: sums(raw.blocks.address),
  stream: numbers(raw.blocks.stream),
  group: numbers(raw.blocks.group),
  stack: numbers(raw.blocks.stack),
  tag: numbers(raw.blocks.tag),
};

const regions = {
  count: raw.regions.count,
  address: sums(raw.regions.address),
  size: numbers(raw.regions.size),
  stream: numbers(raw.regions.stream),
  start: sums(raw.regions.start),
  end: ends(raw.regions.end),
  expandable: numbers(raw.regions.expandable),
};

const replays = raw.replays.map((row) => ({
  ...row,
  name: row.conf === '' ? 'Keel, defaults' : `Keel, ${row.conf}`,
  tick: sums(row.samples.tick),
  reserved: sums(row.samples.reserved),
}));

const recordedName = 'As recorded';
const knowsReserved = raw.recorded.peak_reserved > 0;
const hasHistory = raw.recorded.events > 0;

// --- Text ----------------------------------------------------------------------------------------

function shortNumber(value) {
  return value.toFixed(2).replace(/\.?0+$/, '');
}

// As the command line writes it: cut off, not rounded.
function formatBytes(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
  let unit = 0;
  let value = bytes;
  while (value >= 1024 && unit + 1 < units.length) {
    value /= 1024;
    ++unit;
  }
  return `${shortNumber(Math.floor(value * 100) / 100)} ${units[unit]}`;
}

function formatCount(count) {
  return String(Math.round(count)).replace(/\B(?=(\d{3})+$)/g, ',');
}

function formatDuration(us) {
  if (us === 0) return '0';
  if (us < 1000) return `${shortNumber(us)} \u00b5s`;
  if (us < 1e6) return `${shortNumber(us / 1000)} ms`;
  if (us < 120e6) return `${shortNumber(us / 1e6)} s`;
  return `${Math.floor(us / 60e6)} min ${Math.round((us % 60e6) / 1e6)} s`;
}

// To the microsecond, for when something happened.
function formatMoment(us) {
  if (us < 1000) return formatDuration(us);
  return us < 1e6 ? `${(us / 1000).toFixed(3)} ms` : `${(us / 1e6).toFixed(6)} s`;
}

// With three digits, for how long something took as a whole.
function formatSpan(us) {
  const [value, unit] = us < 1000 ? [us, '\u00b5s'] : us < 1e6 ? [us / 1000, 'ms'] : [us / 1e6, 's'];
  return value < 1000 ? `${Number(value.toPrecision(3))} ${unit}` : formatDuration(us);
}

function formatAddress(offset) {
  return '0x' + (BigInt(raw.base) + BigInt(offset)).toString(16);
}

function formatRatio(reserved, requested) {
  return requested > 0 ? (reserved / requested).toFixed(3) : '-';
}

// "+42.2 %": how much more than was requested.
function formatExcess(reserved, requested) {
  if (!(requested > 0)) return '';
  const percent = (reserved / requested - 1) * 100;
  return `${percent < 0 ? '\u2212' : '+'}${Math.abs(percent).toFixed(1)} %`;
}

// An element with text or children; never with markup, so names from a file stay text.
function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === 'style') {
      Object.assign(node.style, value);
    } else {
      node.setAttribute(key, value);
    }
  }
  node.append(...children);
  return node;
}

function byId(id) {
  return document.getElementById(id);
}

// --- Colours -------------------------------------------------------------------------------------

const darkScheme = window.matchMedia('(prefers-color-scheme: dark)');

const palettes = {
  light: ['#4269d0', '#efb118', '#ff725c', '#35b7a0', '#a463f2', '#ff8ab7', '#3ca951', '#6fa8f5',
    '#9c6b4e', '#e07b39', '#7b8ce0', '#c2c840'],
  dark: ['#5b82ea', '#e8b32f', '#f2745f', '#3fc4ac', '#a877f0', '#f08ab2', '#52b865', '#78adf2',
    '#b08062', '#e58a4e', '#8f9cec', '#c5ca55'],
};

function hash(number) {
  let x = (number + 1) * 0x9e3779b1 >>> 0;
  x ^= x >>> 15;
  x = Math.imul(x, 0x85ebca6b) >>> 0;
  return (x ^ (x >>> 13)) >>> 0;
}

function fromHsl(h, s, l) {
  const f = (n) => {
    const k = (n + h / 30) % 12;
    return Math.round(255 * (l - s * Math.min(l, 1 - l) * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return [f(0), f(8), f(4)];
}

function fromHex(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

// Groups that mattered at the peak have colours of their own; the others are paler.
const rankOfGroup = new Map(raw.peak_groups.list.map(([group], rank) => [group, rank]));

function groupColour(group) {
  const dark = darkScheme.matches;
  const palette = dark ? palettes.dark : palettes.light;
  const rank = rankOfGroup.get(group);
  if (rank !== undefined && rank < palette.length) return fromHex(palette[rank]);
  const h = hash(group);
  const light = ((h >>> 9) % 100) / 1000;
  return dark ? fromHsl(h % 360, 0.3, 0.36 + light) : fromHsl(h % 360, 0.42, 0.72 + light);
}

function sizeColour(size) {
  const largest = Math.max(2, Math.log2(largestBlock));
  const part = Math.max(0, Math.log2(Math.max(size, 1)) / largest);
  return fromHsl(225 - 200 * part ** 3, 0.62, darkScheme.matches ? 0.56 : 0.58);
}

function streamColour(stream) {
  const palette = darkScheme.matches ? palettes.dark : palettes.light;
  return fromHex(palette[stream % palette.length]);
}

let largestBlock = 1;
for (const size of blocks.size) largestBlock = Math.max(largestBlock, size);

function css([r, g, b], alpha = 1) {
  return `rgb(${r} ${g} ${b} / ${alpha})`;
}

function themeColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// A canvas in the pixels of the screen.
function fitCanvas(canvas, height) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const width = canvas.clientWidth;
  if (height !== undefined) canvas.style.height = `${height}px`;
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round((height ?? canvas.clientHeight) * ratio));
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { context, ratio, width, height: height ?? canvas.clientHeight };
}

// A box with text beside the pointer.
function showTip(tip, stage, x, y, title, ...lines) {
  tip.replaceChildren(element('b', {}, title), ...lines.map((line) => element('div', {}, line)));
  tip.hidden = false;
  const left = x + 16 + tip.offsetWidth > stage.clientWidth ? x - 12 - tip.offsetWidth : x + 16;
  tip.style.left = `${Math.max(0, left)}px`;
  tip.style.top = `${Math.max(0, Math.min(y + 12, stage.clientHeight - tip.offsetHeight))}px`;
}
