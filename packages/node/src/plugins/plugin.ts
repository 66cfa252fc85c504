// The interface of a plugin, as in the public client.

import type { MessageType } from '@switchyard/protocol'
import type { Context } from '../call/context.ts'

export type PluginType = 'before' | 'enrichment' | 'destination' | 'after' | 'utility'

type Handlers = { [Type in MessageType]?: ((ctx: Context) => Context | Promise<Context>) | undefined }

/** A plugin. `Instance` is the class of the client that it is registered with. */
export interface PluginOf<Instance> extends Handlers {
  name: string
  type: PluginType
  version?: string | undefined
  /** Other names by which `integrations` can switch a destination plugin on or off. */
  alternativeNames?: string[] | undefined
  /** Whether the plugin is ready; while it returns false, the plugin is skipped. */
  isLoaded: () => boolean
  /** Called on registration. Nothing is sent until the promise has resolved. */
  load: (ctx: Context, instance: Instance) => Promise<unknown>
  unload?: ((ctx: Context, instance: Instance) => unknown) | undefined
  ready?: (() => Promise<unknown>) | undefined
}
