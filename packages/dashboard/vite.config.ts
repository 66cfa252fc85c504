// One build: files with hashed names that the service serves at /. The page loads nothing from another origin.

import { join } from 'node:path'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'
import { font } from './font.ts'
import { usedStyles } from './used-styles.ts'

export default defineConfig({
  plugins: [usedStyles(join(import.meta.dirname, 'src')), font(), react()],
  build: { outDir: 'dist', target: 'es2022', assetsInlineLimit: 0, chunkSizeWarningLimit: 800, reportCompressedSize: false },
  // For work on the page itself: `npx vite` in this folder, beside a running service.
  server: { proxy: { '/api': 'http://127.0.0.1:8080', '/v1': 'http://127.0.0.1:8080', '/docs': 'http://127.0.0.1:8080' } },
})
