// The shape of a plugin, as in the public client.

import type { MessageType } from '@switchyard/protocol'
import type { Context } from '../call/context.ts'

export type PluginType = 'before' | 'enrichment' | 'destination' | 'after' | 'utility'

type Handlers = { [Type in MessageType]?: ((ctx: Context) => Context | Promise<Context>) | undefined }

/** `Instance` is the Analytics that the plugin is registered with. */
export interface PluginOf<Instance> extends Handlers {
  name: string
  type: PluginType
  version?: string | undefined
  /** Other names by which `integrations` may switch a destination plugin on or off. */
  alternativeNames?: string[] | undefined
  isLoaded: () => boolean
  /** No event is sent to any destination until it has resolved. */
  load: (ctx: Context, instance: Instance) => Promise<unknown>
  unload?: ((ctx: Context, instance: Instance) => unknown) | undefined
  ready?: (() => Promise<unknown>) | undefined
}
