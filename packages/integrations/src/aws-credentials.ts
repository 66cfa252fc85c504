// Access keys of the user for integrations that write to AWS. Their code assumes a role of Segment first, which only Segment's machines may, and with
// it the role of the user. Here it gets the user's keys, or assumes the user's role with them.

import { createRequire } from 'node:module'
import { join } from 'node:path'
import { definitionsFolder, require } from './definitions.ts'
import { NO_ROLE } from './host-settings.ts'
import { type AwsKeys, currentAwsKeys } from './host-values.ts'
import { runs } from './recording/run-trace.ts'

interface Client {
  region: string
  roleArn: string
  externalId: string
  assumeRole(): Promise<AwsKeys>
}
type Clients = Readonly<Record<string, { prototype: Client }>>

interface Sts {
  STSClient: new (options: object) => { send(command: object): Promise<{ Credentials?: Partial<Record<string, string>> }> }
  AssumeRoleCommand: new (input: object) => object
}

/** The classes that assume a role, by the module that exports them. */
const CLIENTS: Readonly<Record<string, readonly [module: string, name: string]>> = {
  'actions-s3': ['s3/syncToS3/client.js', 'Client'],
  'actions-s3-csv': ['aws-s3/syncAudienceToCSV/s3.js', 'S3CSVClient'],
}
const KINESIS = 'actions-aws-kinesis'

const patched = new Set<string>()

/** Before the code of the integration runs. The keys themselves are those of the run. */
export function useOwnAwsKeys(slug: string): void {
  if (patched.has(slug)) return
  patched.add(slug)
  const client = CLIENTS[slug]
  if (client !== undefined) {
    const [path, name] = client
    const { prototype } = (require(join(definitionsFolder(), path)) as Clients)[name] as { prototype: Client }
    prototype.assumeRole = async function () {
      return await credentials(this.roleArn, this.externalId, this.region)
    }
  }
  if (slug === KINESIS) {
    const sts = require(join(definitionsFolder(), '../lib/AWS/sts.js')) as { assumeRole: typeof credentials }
    sts.assumeRole = credentials
  }
}

async function credentials(roleArn: string, externalId: string, region: string): Promise<AwsKeys> {
  const keys = currentAwsKeys()
  if (keys === null) throw new Error('The settings awsAccessKeyId and awsSecretAccessKey are missing.')
  if (roleArn === NO_ROLE) return keys
  const { STSClient, AssumeRoleCommand } = createRequire(definitionsFolder())('@aws-sdk/client-sts') as Sts
  const { Credentials: assumed = {} } = await new STSClient({ region, credentials: keys }).send(
    new AssumeRoleCommand({
      RoleArn: roleArn,
      RoleSessionName: 'switchyard',
      ...(externalId !== NO_ROLE && { ExternalId: externalId }),
    }),
  )
  const { AccessKeyId, SecretAccessKey, SessionToken } = assumed
  if (AccessKeyId === undefined || SecretAccessKey === undefined || SessionToken === undefined)
    throw new Error('AWS returned no credentials for the role.')
  for (const secret of [AccessKeyId, SecretAccessKey, SessionToken]) runs.getStore()?.trace.hide(secret)
  return { accessKeyId: AccessKeyId, secretAccessKey: SecretAccessKey, sessionToken: SessionToken }
}
