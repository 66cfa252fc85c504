// The entry point of `switchyard COMMAND …`. Only here is the global `process` (arguments, environment, streams, signals, exit code)
// passed to the command line.

import { runCommandLine } from './commands/main.ts'

await runCommandLine(process)
