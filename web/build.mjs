// Makes of src/ what a browser reads, in dist/. What is there of git's stays.
import { build } from 'esbuild';
import { copyFile } from 'node:fs/promises';

await build({
  entryPoints: { app: 'src/main.tsx', style: 'src/style.css' },
  bundle: true,
  minify: true,
  target: ['chrome123', 'firefox120', 'safari17.5'],
  format: 'esm',
  outdir: 'dist',
  logLevel: 'warning',
});
for (const file of ['index.html', 'icon.svg']) await copyFile(`src/${file}`, `dist/${file}`);
