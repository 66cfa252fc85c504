#!/usr/bin/env node
// `./switchyard …` in a clone, where a link at its root leads here, so that it works from any folder. Plain JavaScript that runs on Node.js 18 or later. It starts the pinned runtime through scripts/run.mjs,
// which forwards arguments, streams, signals and the exit code.
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const run = join(dirname(fileURLToPath(import.meta.url)), '..', '..', '..', 'scripts', 'run.mjs')

// The limits of the heap are for the service; `npm start` sets the same.
process.argv.splice(1, 1, run, '--max-semi-space-size=16', '--heap-growing-percent=100', 'packages/server/src/cli.ts')
await import(pathToFileURL(run).href)
