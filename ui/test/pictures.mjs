// Compares pictures by the mean colour of blocks: another antialiasing of the same glyphs changes it a little, another element a lot.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export const block = 8; // px
const alike = 10; // of 255: by so much may a channel of a block differ
const stray = 1; // blocks of a picture that may differ more, such as the end of a line

// pictures returns what works with PNGs: a blank page decodes and encodes them.
export async function pictures(browser) {
  const page = await browser.newPage();
  await page.evaluate(
    ({ block }) => {
      const draw = async (png, scale = 1) => {
        const image = new Image();
        image.src = 'data:image/png;base64,' + png;
        await image.decode();
        const canvas = new OffscreenCanvas(image.width * scale, image.height * scale),
          g = canvas.getContext('2d', { willReadFrequently: true });
        g.imageSmoothingEnabled = false;
        g.drawImage(image, 0, 0, canvas.width, canvas.height);
        return { canvas, g, data: g.getImageData(0, 0, canvas.width, canvas.height).data };
      };
      const encode = async (canvas) => {
        const bytes = new Uint8Array(await (await canvas.convertToBlob()).arrayBuffer());
        return btoa(bytes.reduce((text, b) => text + String.fromCharCode(b), ''));
      };
      // reduce returns a picture with a pixel for each block.
      window.reduce = async (png) => {
        const { canvas, data } = await draw(png);
        const small = new OffscreenCanvas(Math.ceil(canvas.width / block), Math.ceil(canvas.height / block)),
          g = small.getContext('2d'),
          to = g.createImageData(small.width, small.height);
        for (let by = 0; by < small.height; by++)
          for (let bx = 0; bx < small.width; bx++) {
            const sum = [0, 0, 0];
            let n = 0;
            for (let y = by * block; y < Math.min(canvas.height, (by + 1) * block); y++)
              for (let x = bx * block; x < Math.min(canvas.width, (bx + 1) * block); x++, n++)
                for (let c = 0; c < 3; c++) sum[c] += data[4 * (y * canvas.width + x) + c];
            const at = 4 * (by * small.width + bx);
            for (let c = 0; c < 3; c++) to.data[at + c] = Math.round(sum[c] / n);
            to.data[at + 3] = 255;
          }
        g.putImageData(to, 0, 0);
        return encode(small);
      };
      // differing returns the blocks that differ, [x, y, by how much], or null if the sizes differ.
      window.differing = async (one, other, alike) => {
        const [a, b] = [await draw(one), await draw(other)];
        if (a.canvas.width !== b.canvas.width || a.canvas.height !== b.canvas.height) return null;
        const found = [];
        for (let i = 0; i < a.data.length; i += 4) {
          const by = Math.max(...[0, 1, 2].map((c) => Math.abs(a.data[i + c] - b.data[i + c])));
          if (by > alike) found.push([(i / 4) % a.canvas.width, Math.floor(i / 4 / a.canvas.width), by]);
        }
        return found;
      };
      window.enlarge = async (png) => encode((await draw(png, block)).canvas);
      window.marked = async (png, blocks) => {
        const { canvas, g } = await draw(png);
        g.fillStyle = '#fffb';
        g.fillRect(0, 0, canvas.width, canvas.height);
        g.fillStyle = '#f0f8';
        for (const [x, y] of blocks) g.fillRect(x * block, y * block, block, block);
        return encode(canvas);
      };
    },
    { block },
  );
  const reduce = (png) => page.evaluate((p) => window.reduce(p), png);
  return {
    // save stores what a picture is expected to look like.
    async save(file, png) {
      writeFileSync(file, Buffer.from(await reduce(png), 'base64'));
    },
    // compare returns how a picture differs from the expected one, '' if it does not, and writes three pictures into a folder.
    async compare(file, png, folder, name) {
      if (!existsSync(file)) return `${file} does not exist`;
      const expected = readFileSync(file, 'base64');
      const blocks = await page.evaluate(([a, b, alike]) => window.differing(a, b, alike), [await reduce(png), expected, alike]);
      if (blocks && blocks.length <= stray) return '';
      mkdirSync(folder, { recursive: true });
      const write = (what, base64) => writeFileSync(join(folder, `${name}-${what}.png`), Buffer.from(base64, 'base64'));
      write('actual', png);
      write('expected', await page.evaluate((p) => window.enlarge(p), expected));
      if (!blocks) return 'it has another size';
      write('difference', await page.evaluate(([p, b]) => window.marked(p, b), [png, blocks]));
      const [x, y] = blocks[0];
      const most = Math.max(...blocks.map(([, , by]) => by));
      return `${blocks.length} blocks of ${block} px differ, the first at ${x * block}, ${y * block}, by ${most} of 255 at most`;
    },
  };
}
