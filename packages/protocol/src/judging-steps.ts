// Limits the work of judging one message. A schema is part of the settings and the message comes from a sender, and together they can ask
// for billions of checks: the branches of an `anyOf` times the elements of an array. So the code that Ajv generates counts its steps, and what
// it calls does so as well. A step takes up to 20 ns. If a message needs more steps than it has, judging it ends with StepsExceeded.

/** Of each message: up to about 20 ms. A message of 32 KB that is judged by a schema of usual size needs a tenth of them. */
export const MAX_MESSAGE_STEPS = 1_000_000
/** Of all messages of a request: up to about 100 ms. */
export const MAX_REQUEST_STEPS = 5_000_000
/** For patterns, whose steps are estimated for the worst text. They take up to 5 ns each. A text for which there are too few left counts as matching. */
const MAX_PATTERN_STEPS = 100_000
const MAX_REQUEST_PATTERN_STEPS = 50_000_000
/** How much generated code counts as one step. Most of it creates errors, which are counted one by one. */
const CODE_PER_STEP = 100
const STEPS_PER_ERROR = 40
/** For adding a key to the object that `unevaluatedProperties` needs, and copying it. */
const STEPS_PER_EVALUATED_KEY = 100
const EVALUATED_KEY = /\bprops\d+\[key\d+\]/

/** What is left for the messages of a request. */
export interface StepBudget {
  steps: number
  patternSteps: number
}

export function requestBudget(): StepBudget {
  return { steps: MAX_REQUEST_STEPS, patternSteps: MAX_REQUEST_PATTERN_STEPS }
}

export class StepsExceeded extends Error {
  override name = 'StepsExceeded'
}

type Callee = (...values: never[]) => unknown

/** The steps of the validators of one compiler. */
export class JudgingSteps {
  /** Unlimited while no message is judged: the validator also checks schemas. */
  #left = Number.POSITIVE_INFINITY
  #patternsLeft = Number.POSITIVE_INFINITY

  /** Runs a validator with the steps of one message. */
  run<T>(budget: StepBudget, validate: () => T): T {
    const steps = Math.min(MAX_MESSAGE_STEPS, budget.steps)
    const patternSteps = Math.min(MAX_PATTERN_STEPS, budget.patternSteps)
    this.#left = steps
    this.#patternsLeft = patternSteps
    try {
      return validate()
    } finally {
      budget.steps -= steps - Math.max(0, this.#left)
      budget.patternSteps -= patternSteps - Math.max(0, this.#patternsLeft)
      this.#left = this.#patternsLeft = Number.POSITIVE_INFINITY
    }
  }

  take(steps: number): void {
    this.#left -= steps
    if (this.#left < 0) throw new StepsExceeded()
  }

  /** Returns whether there are enough steps left to try a pattern. A pattern that would need more takes none. */
  takeForPattern(steps: number, text: string): boolean {
    this.take(5 + text.length / 4)
    if (steps > this.#patternsLeft) return false
    this.#patternsLeft -= steps
    return true
  }

  /** Called by generated code, once for each error. The path may contain long keys. An error that only decides about a branch has none. */
  error({ instancePath = '' }: { instancePath?: string }): void {
    this.take(STEPS_PER_ERROR + instancePath.length / 8)
  }

  /** Called by generated code for the functions that it uses. Two of them take time in proportion to the value. */
  meteredFunction(callee: Callee): Callee {
    if (callee.name === 'equal') return (left: unknown, right: unknown) => this.#areEqual(left, right)
    return callee.name === 'ucs2length' ? (text: never) => this.#takeText(text) && callee(text) : callee
  }

  /** Called by generated code for the formats that it uses. */
  meteredFormat(format: unknown): unknown {
    if (format instanceof RegExp) return { test: (text: string) => this.#takeText(text) && format.test(text) }
    if (typeof format === 'function') return (value: unknown) => this.#takeText(value) && (format as (value: unknown) => unknown)(value)
    const definition = format as { validate: unknown }
    return { ...definition, validate: this.meteredFormat(definition.validate) }
  }

  #takeText(value: unknown): true {
    this.take(typeof value === 'string' ? 1 + value.length : 1)
    return true
  }

  /** Of JSON values. */
  #areEqual(left: unknown, right: unknown): boolean {
    this.take(typeof left === 'object' ? 10 : 1)
    if (left === right) return true
    if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null) return false
    if (Array.isArray(left) !== Array.isArray(right)) return false
    const keys = Object.keys(left)
    if (keys.length !== Object.keys(right).length) return false
    this.take(keys.length * 5)
    return keys.every(
      (key) => Object.hasOwn(right, key) && this.#areEqual((left as Record<string, unknown>)[key], (right as Record<string, unknown>)[key]),
    )
  }
}

/** Strings contain brackets that are not code. The only regular expressions in generated code are those that escape slashes in keys. */
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|\bfor\(|[(){}]/g

/**
 * Adds counting to the code that Ajv generates, where `self` is the validator: a step for some code of each function and of each turn of a loop,
 * and some for each error. In this code, all loops are `for` loops with braces.
 */
export function withSteps(code: string): string {
  /** Where the code of each loop and function starts, and how long it is. */
  const bodies: { at: number; length: number }[] = []
  const open: { isLoop: boolean; at: number }[] = []
  let isLoopNext = false
  for (const { 0: token, index } of code.matchAll(TOKENS)) {
    if (token === 'for(') open.push({ isLoop: true, at: index })
    else if (token === '(') open.push({ isLoop: false, at: index })
    else if (token === ')') isLoopNext = open.pop()?.isLoop === true && code[index + 1] === '{'
    else if (token === '{') {
      open.push({ isLoop: isLoopNext, at: index + 1 })
      isLoopNext = false
    } else if (token === '}') {
      const { isLoop, at } = open.pop() ?? { isLoop: false, at: 0 }
      if (isLoop) bodies.push({ at, length: index - at })
    }
  }
  bodies.sort((left, right) => left.at - right.at)
  let counted = 'const $steps = self.$steps;'
  let from = 0
  for (const { at, length } of bodies) {
    const keys = EVALUATED_KEY.test(code.slice(at, at + length)) ? STEPS_PER_EVALUATED_KEY : 0
    counted += `${code.slice(from, at)}$steps.take(${1 + Math.ceil(length / CODE_PER_STEP) + keys});`
    from = at
  }
  counted += code.slice(from)
  return counted
    .replaceAll(/const (func\d+) = (scope\.func\[\d+\]);/g, 'const $1 = $$steps.meteredFunction($2);')
    .replaceAll(/const (formats\d+) = (scope\.formats\[\d+\]);/g, 'const $1 = $$steps.meteredFormat($2);')
    .replaceAll(/(else ?\{vErrors\.push\((err\d+)\);\}errors\+\+;)/g, '$1$$steps.error($2);')
    .replaceAll(/\{let vErrors ?= ?null;let errors ?= ?0;/g, `$&$$steps.take(${1 + Math.ceil(code.length / CODE_PER_STEP)});`)
}
