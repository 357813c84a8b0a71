// Draws the stack of live blocks, column by column, into pixels. The cost of a picture is that of
// its pixels and of what is live in its columns, however long the history is.
//
// Of a column that many events fall into, the moment with the most requested is drawn: a peak is
// never lost, however far one zooms out.
'use strict';

const kNothing = -1;
const kSmall = -2;

class Raster {
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.image = new ImageData(width, height);
    // Column after column, each from the bottom to the top, because that is how they are filled.
    this.pixels = new Uint32Array(width * height);
    this.ids = new Int32Array(width * height);
    this.tickOfColumn = new Int32Array(width);
  }

  // `axis` has a value for each tick, in order; `view` is {x0, x1, y0, y1}; `paint` has the colours
  // of each block, its body and its edge, of the small ones and of nothing.
  draw(axis, view, paint) {
    this.chooseTicks(axis, view);
    const { width, height, pixels } = this;
    const scale = height / (view.y1 - view.y0);
    const unitsPerPixel = (view.x1 - view.x0) / width;
    const live = [];
    let begun = [];  // blocks with an edge on the left in the column before: [from, to, block]
    let small = [0, 0];
    let next = 0;
    let tickBefore = -1;
    for (let x = 0; x < width; ++x) {
      const tick = this.tickOfColumn[x];
      if (tick === tickBefore) {
        this.copyColumn(x);
        for (const [from, to, block] of begun) {
          pixels.fill(paint.body[block], x * height + from, x * height + to - 1);
        }
        begun = [];
        this.hatch(x, small, paint);
        continue;
      }
      tickBefore = tick;
      begun = [];
      // In order of their start, so that what stays longest lies lowest.
      let kept = 0;
      for (const block of live) if (blocks.end[block] > tick) live[kept++] = block;
      live.length = kept;
      const firstNew = kept;
      for (; next < blocks.count && blocks.start[next] <= tick; ++next) {
        if (blocks.end[next] > tick) live.push(next);
      }
      let bytes = -view.y0;
      let row = 0;
      for (let i = 0; i < live.length && row < height; ++i) {
        const block = live[i];
        bytes += blocks.size[block];
        const to = Math.min(height, Math.round(bytes * scale));
        if (to <= row) continue;
        const tall = to - row >= 4;
        const begins = tall && i >= firstNew && x > 0 &&
          axis[Math.min(blocks.end[block], tickCount - 1)] - axis[blocks.start[block]] > 6 * unitsPerPixel;
        this.fill(x, row, to, begins ? paint.edge[block] : paint.body[block], block);
        if (begins) begun.push([row, to, block]);
        if (tall) pixels[x * height + to - 1] = paint.edge[block];
        row = to;
      }
      const top = Math.min(height, Math.max(row, Math.round((bytes + ticks.smallBytes[tick]) * scale)));
      small = [row, top];
      this.fill(x, row, top, paint.small, kSmall);
      this.hatch(x, small, paint);
      this.fill(x, top, height, paint.nothing, kNothing);
    }
    this.toImage();
  }

  chooseTicks(axis, view) {
    let tick = 0;
    for (let x = 0; x < this.width; ++x) {
      const from = view.x0 + (view.x1 - view.x0) * x / this.width;
      const to = view.x0 + (view.x1 - view.x0) * (x + 1) / this.width;
      while (tick + 1 < tickCount && axis[tick + 1] <= from) ++tick;
      let best = tick;
      while (tick + 1 < tickCount && axis[tick + 1] < to) {
        ++tick;
        if (ticks.requested[tick] > ticks.requested[best]) best = tick;
      }
      this.tickOfColumn[x] = best;
    }
  }

  fill(x, from, to, colour, id) {
    if (to <= from) return;
    this.pixels.fill(colour, x * this.height + from, x * this.height + to);
    this.ids.fill(id, x * this.height + from, x * this.height + to);
  }

  copyColumn(x) {
    const { height } = this;
    this.pixels.copyWithin(x * height, (x - 1) * height, x * height);
    this.ids.copyWithin(x * height, (x - 1) * height, x * height);
  }

  // The band of small blocks, from and to, in diagonal stripes.
  hatch(x, [from, to], paint) {
    for (let y = from; y < to; ++y) {
      this.pixels[x * this.height + y] = (x + y) % 6 < 2 ? paint.smallDark : paint.small;
    }
  }

  // Rows from the top, as an image has them; in squares, so that both sides stay in the cache.
  toImage() {
    const { width, height, pixels } = this;
    const out = new Uint32Array(this.image.data.buffer);
    const side = 32;
    for (let x0 = 0; x0 < width; x0 += side) {
      const x1 = Math.min(x0 + side, width);
      for (let y0 = 0; y0 < height; y0 += side) {
        const y1 = Math.min(y0 + side, height);
        for (let y = y0; y < y1; ++y) {
          const row = (height - 1 - y) * width;
          for (let x = x0; x < x1; ++x) out[row + x] = pixels[x * height + y];
        }
      }
    }
  }

  // Of the block at a pixel that is counted from the top.
  idAt(x, y) {
    if (x < 0 || y < 0 || x >= this.width || y >= this.height) return kNothing;
    return this.ids[x * this.height + this.height - 1 - y];
  }

  // The rows of a block in a column, [top, bottom) from the top; null where it is not.
  rowsOf(block, x) {
    const begin = x * this.height;
    const end = begin + this.height;
    const first = this.ids.subarray(begin, end).indexOf(block);
    if (first < 0) return null;
    let last = begin + first;
    while (last < end && this.ids[last] === block) ++last;
    return [this.height - (last - begin), this.height - first];
  }
}
