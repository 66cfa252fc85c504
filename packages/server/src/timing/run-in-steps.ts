// Splits work of any size into small steps. Each step is its own transaction, so that other transactions do not wait long.

/** Repeats a step until it returns 0 or false because nothing is left to do, or until `isStopped`. The next run continues from there. */
export async function runInSteps(step: () => Promise<number | boolean>, isStopped: () => boolean): Promise<void> {
  while (!isStopped() && Number(await step()) > 0);
}
