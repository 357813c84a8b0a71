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
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.ids = new Int32Array(width * height);
    this.tickOfColumn = new Int32Array(width);
  }

  // `axis` has a value for each tick, in order; `view` is {x0, x1, y0, y1}; `paint` has the colours
  // of each block, its body and its edge, of the small ones and of nothing.
  draw(axis, view, paint) {
    this.chooseTicks(axis, view);
    this.paint = paint;
    const { width, height, pixels, ids } = this;
    const scale = height / (view.y1 - view.y0);
    const unitsPerPixel = (view.x1 - view.x0) / width;
    let live = [];
    let next = 0;
    let tickBefore = -1;
    for (let x = 0; x < width; ++x) {
      const tick = this.tickOfColumn[x];
      if (tick === tickBefore && x > 0) {
        this.copyColumn(x);
        continue;
      }
      // In order of their start, so that what stays longest lies lowest.
      let kept = 0;
      for (const block of live) if (blocks.end[block] > tick) live[kept++] = block;
      live.length = kept;
      const firstNew = kept;
      for (; next < blocks.count && blocks.start[next] <= tick; ++next) {
        if (blocks.end[next] > tick) live.push(next);
      }
      let bytes = -view.y0;
      let row = 0;  // from the bottom
      for (let i = 0; i < live.length; ++i) {
        const block = live[i];
        bytes += blocks.size[block];
        const to = Math.min(height, Math.round(bytes * scale));
        if (to <= row) continue;
        const tall = to - row >= 4;
        const begins = tall && i >= firstNew && x > 0 &&
          (axis[Math.min(blocks.end[block], tickCount - 1)] - axis[blocks.start[block]]) >
          6 * unitsPerPixel;
        this.fill(x, row, to, begins ? paint.edge[block] : paint.body[block], block);
        if (tall) pixels[(height - to) * width + x] = paint.edge[block];
        row = to;
        if (row >= height) break;
      }
      const top = Math.min(height, Math.round((bytes + ticks.smallBytes[tick]) * scale));
      if (top > row) {
        for (let y = row; y < top; ++y) {
          const at = (height - 1 - y) * width + x;
          pixels[at] = this.hatch(x, y);
          ids[at] = kSmall;
        }
        row = top;
      }
      this.fill(x, Math.max(row, 0), height, paint.nothing, kNothing);
      tickBefore = tick;
    }
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
      // Never back: the next column begins where this one was looked at.
      this.tickOfColumn[x] = Math.max(best, x > 0 ? this.tickOfColumn[x - 1] : 0);
    }
  }

  fill(x, from, to, colour, id) {
    const { width, height, pixels, ids } = this;
    for (let at = (height - to) * width + x, y = from; y < to; ++y, at += width) {
      pixels[at] = colour;
      ids[at] = id;
    }
  }

  copyColumn(x) {
    const { width, height, pixels, ids, paint } = this;
    for (let y = 0, at = x; y < height; ++y, at += width) {
      const id = ids[at - 1];
      ids[at] = id;
      if (id === kSmall) {
        pixels[at] = this.hatch(x, height - 1 - y);
      } else if (id === kNothing || y === 0 || ids[at - width] !== id) {
        pixels[at] = pixels[at - 1];  // an edge on the top goes on
      } else {
        pixels[at] = paint.body[id];  // one on the left is one pixel wide
      }
    }
  }

  hatch(x, y) {
    return (x + y) % 6 < 2 ? this.paint.smallDark : this.paint.small;
  }

  idAt(x, y) {
    if (x < 0 || y < 0 || x >= this.width || y >= this.height) return kNothing;
    return this.ids[y * this.width + x];
  }
}
