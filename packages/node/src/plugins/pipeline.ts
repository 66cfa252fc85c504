// Runs the plugins in the order of their types: before, enrichment, destination (at the same time as the tracking API), after.
// If a before or enrichment plugin throws, its message fails; if a destination or after plugin throws, it does not. As long as
// the plugins are synchronous, so is the pipeline, and messages keep the order of the calls.

import { allIntegrations, type Integrations, type MessageType } from '@switchyard/protocol'
import { Context, ContextCancelation } from '../call/context.ts'
import { AnalyticsError, messageOf } from '../call/errors.ts'
import type { PluginOf, PluginType } from './plugin.ts'

const TYPES: readonly PluginType[] = ['before', 'enrichment', 'destination', 'after', 'utility']

/** A concurrent run of several plugins on one message. */
export interface PluginRun {
  /** Names of the plugins that are still running. */
  readonly running: ReadonlySet<string>
  /** Resolves when all plugins have finished, whether they succeeded or failed. */
  readonly done: Promise<void>
}

export class Pipeline<Instance> {
  #plugins: PluginOf<Instance>[] = []
  #loading = 0
  #waiting: (() => void)[] = []
  readonly #report: (error: AnalyticsError) => void

  constructor(report: (error: AnalyticsError) => void) {
    this.#report = report
  }

  /** Whether messages of this type can skip the pipeline. */
  isIdle(type: MessageType): boolean {
    if (this.isWaiting) return false
    for (const plugin of this.#plugins) if (plugin.type !== 'utility' && plugin[type] !== undefined) return false
    return true
  }

  /** Whether a message must wait, because a plugin is loading or earlier messages still wait. */
  get isWaiting(): boolean {
    return this.#loading > 0 || this.#waiting.length > 0
  }

  /** Calls `run` at the first release() after all plugins have loaded. */
  wait(run: () => void): void {
    this.#waiting.push(run)
  }

  /** Messages wait until finishRegister(), which must follow once. */
  async register(plugins: PluginOf<Instance>[], instance: Instance): Promise<void> {
    this.#loading++
    for (const plugin of plugins) {
      const problem = problemOf(plugin)
      if (problem === undefined) continue
      const failure = new AnalyticsError('plugin_load_failed', problem)
      this.#report(failure)
      throw failure
    }
    const results = await Promise.allSettled(plugins.map((plugin) => this.#load(plugin, instance)))
    const failed = results.find((result) => result.status === 'rejected')
    if (failed) throw failed.reason
  }

  async #load(plugin: PluginOf<Instance>, instance: Instance): Promise<void> {
    try {
      await plugin.load(Context.system(), instance)
      // A plugin replaces an earlier one with the same name.
      this.#plugins = [...this.#plugins.filter((other) => other.name !== plugin.name), plugin]
    } catch (error) {
      const failure = new AnalyticsError('plugin_load_failed', `plugin ${plugin.name} did not load: ${messageOf(error)}`, { reason: error })
      this.#report(failure)
      throw failure
    }
  }

  finishRegister(): void {
    this.#loading--
  }

  /** Lets waiting messages continue, unless a plugin is loading. */
  release(): void {
    if (this.#loading === 0 && this.#waiting.length > 0) for (const run of this.#waiting.splice(0)) run()
  }

  /** Removes plugins by name. Returns the names of those that were registered. */
  async deregister(names: string[], instance: Instance): Promise<string[]> {
    const removed = this.#plugins.filter((plugin) => names.includes(plugin.name))
    this.#plugins = this.#plugins.filter((plugin) => !removed.includes(plugin))
    for (const plugin of removed) {
      try {
        await plugin.unload?.(Context.system(), instance)
      } catch (error) {
        this.#report(
          new AnalyticsError('plugin_load_failed', `plugin ${plugin.name} did not unload: ${messageOf(error)}`, { reason: error }),
        )
      }
    }
    return removed.map((plugin) => plugin.name)
  }

  /**
   * Runs before and enrichment plugins. Throws an AnalyticsError if one of them throws or cancels the message. Calls
   * `onWait` with the name of each plugin that returned a promise.
   */
  enrich(ctx: Context, onWait: (plugin: string) => void): Context | Promise<Context> {
    const { type } = ctx.event
    const plugins = [...this.#of('before', type), ...this.#of('enrichment', type)]
    return runInTurn(plugins, 0, type, ctx, onWait)
  }

  /** Runs the destination plugins independently of each other. */
  deliver(ctx: Context): PluginRun | undefined {
    return this.#runApart('destination', ctx)
  }

  /** Runs the after plugins; to be called once the message's outcome is known. */
  finish(ctx: Context): PluginRun | undefined {
    return this.#runApart('after', ctx)
  }

  #of(role: PluginType, type: MessageType): PluginOf<Instance>[] {
    return this.#plugins.filter((plugin) => plugin.type === role && plugin[type] !== undefined && this.#isLoaded(plugin))
  }

  #isLoaded(plugin: PluginOf<Instance>): boolean {
    try {
      return plugin.isLoaded()
    } catch (error) {
      this.#report(new AnalyticsError('plugin_failed', `plugin ${plugin.name} failed: ${messageOf(error)}`, { reason: error }))
      return false
    }
  }

  /** Never throws, even if a plugin has corrupted the context, because the message must still get its outcome. */
  #runApart(role: 'destination' | 'after', ctx: Context): PluginRun | undefined {
    try {
      const { type, integrations } = ctx.event
      const plugins = this.#of(role, type).filter((plugin) => role === 'after' || isEnabled(plugin, integrations))
      if (plugins.length === 0) return undefined
      const running = new Set(plugins.map((plugin) => plugin.name))
      const runs = plugins.map(async (plugin) => {
        try {
          await plugin[type]?.(ctx)
        } catch (error) {
          this.#report(pluginError(plugin, error, ctx))
        }
        running.delete(plugin.name)
      })
      return { running, done: Promise.all(runs).then(() => {}) }
    } catch (error) {
      this.#report(new AnalyticsError('plugin_failed', `could not run the ${role} plugins: ${messageOf(error)}`, { reason: error }))
      return undefined
    }
  }
}

function runInTurn<Instance>(
  plugins: PluginOf<Instance>[],
  from: number,
  type: MessageType,
  ctx: Context,
  onWait: (plugin: string) => void,
): Context | Promise<Context> {
  let current = ctx
  for (let at = from; at < plugins.length; at++) {
    const plugin = plugins[at] as PluginOf<Instance>
    let result: unknown
    try {
      result = plugin[type]?.(current)
    } catch (error) {
      throw pluginError(plugin, error, current)
    }
    if (isThenable(result)) {
      onWait(plugin.name)
      return result.then(
        (next) => runInTurn(plugins, at + 1, type, next instanceof Context ? next : current, onWait),
        (error: unknown) => {
          throw pluginError(plugin, error, current)
        },
      )
    }
    // A handler that returns nothing may still have changed the context that it received.
    if (result instanceof Context) current = result
  }
  return current
}

function pluginError<Instance>(plugin: PluginOf<Instance>, error: unknown, ctx: Context): AnalyticsError {
  if (error instanceof ContextCancelation) {
    return new AnalyticsError('plugin_cancelled', `plugin ${plugin.name} cancelled the message: ${error.reason ?? 'no reason given'}`, {
      reason: error,
      ctx,
    })
  }
  return new AnalyticsError('plugin_failed', `plugin ${plugin.name} failed: ${messageOf(error)}`, { reason: error, ctx })
}

/** Looks up the plugin in `integrations` by its names, otherwise by `All`. An object counts as on. */
function isEnabled<Instance>(plugin: PluginOf<Instance>, integrations: Integrations | undefined): boolean {
  if (!integrations) return true
  for (const name of [plugin.name, ...(plugin.alternativeNames ?? [])]) {
    if (Object.hasOwn(integrations, name) && integrations[name] !== undefined) return integrations[name] !== false
  }
  return allIntegrations(integrations) !== false
}

function isThenable(value: unknown): value is Promise<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
}

/** Returns why a value is not a valid plugin, or undefined if it is valid. */
function problemOf<Instance>(plugin: PluginOf<Instance>): string | undefined {
  if (typeof plugin?.name !== 'string' || plugin.name === '') return 'a plugin must have a name, as a non-empty string'
  if (!TYPES.includes(plugin.type)) return `plugin ${plugin.name}: type must be one of ${TYPES.join(', ')}`
  for (const method of ['isLoaded', 'load'] as const) {
    if (typeof plugin[method] !== 'function') return `plugin ${plugin.name}: ${method} must be a function`
  }
  if (plugin.alternativeNames !== undefined && !Array.isArray(plugin.alternativeNames))
    return `plugin ${plugin.name}: alternativeNames must be an array`
  return undefined
}
