// Builds dist/ from src/ for browsers. Keeps files tracked by git in dist/.
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
