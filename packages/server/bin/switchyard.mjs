#!/usr/bin/env node
// `npx switchyard …` in a clone. Plain JavaScript for any Node.js from 18: it hands over to the pinned runtime by way of
// scripts/run.mjs, which passes on arguments, streams, signals and the exit code.
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const run = join(dirname(fileURLToPath(import.meta.url)), '..', '..', '..', 'scripts', 'run.mjs')

// As `npm start` has it; a larger young generation is for the service.
process.argv.splice(1, 1, run, '--max-semi-space-size=16', 'packages/server/src/cli.ts')
await import(pathToFileURL(run).href)
