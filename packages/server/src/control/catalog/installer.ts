// What installs the catalogue, as the routes see it.

/** Installs in the background; app.ts hands it in. */
export interface CatalogInstaller {
  state(): Installation
  /** Does nothing if the catalogue is installed, or is being installed by this or another process. */
  start(): Installation
}

export interface Installation {
  state: 'missing' | 'installing' | 'installed' | 'failed'
  /** Packages that are in place, of all that are installed. */
  done: number
  total: number
  /** Why the last one failed. */
  error: string | null
}
