// Shown instead of the form while the warehouse package is not installed.

import type { ReactNode } from 'react'
import { useApi, useChange } from '../../api/queries.ts'
import { InstallPackage } from '../../components/install-package.tsx'
import { Loaded } from '../../components/page.tsx'
import { useCommand, useSession } from '../../session/session.tsx'

export function IfInstalled({ children }: { children: ReactNode }) {
  const installation = useApi('GET /api/warehouse/install', {
    everyMs: (answer) => (answer?.state === 'installed' ? undefined : answer?.state === 'installing' ? 1_000 : 10_000),
  })
  const install = useChange('POST /api/warehouse/install', 'GET /api/warehouse/install')
  const program = useCommand()
  const { isAdmin } = useSession()
  return (
    <Loaded query={installation}>
      {(progress) =>
        progress.state === 'installed' ? (
          children
        ) : (
          <InstallPackage
            title="The warehouse package is not installed"
            action="Install the package"
            isAdmin={isAdmin}
            adminsOnly="Installing it requires the admin role."
            command={`${program} warehouse install`}
            progress={progress}
            install={install}
          >
            The code that writes tables and runs SQL is a separate package. The service downloads it from the npm registry once, without a
            restart. With several nodes, install it on each of them.
          </InstallPackage>
        )
      }
    </Loaded>
  )
}
