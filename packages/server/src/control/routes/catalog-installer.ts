// The interface through which the routes install the catalogue and the warehouse package.

/** Installs in the background. app.ts creates it. */
export interface CatalogInstaller {
  state(): Installation
  /** Does nothing if the package is installed, or is being installed by this or another process. */
  start(): Installation
}

export interface Installation {
  state: 'missing' | 'installing' | 'installed' | 'failed'
  /** The number of packages that are already installed, out of `total`. */
  done: number
  total: number
  /** Why the last installation failed. */
  error: string | null
}
