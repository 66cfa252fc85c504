// Checks of the file system: free disk space, and who can read the key that encrypts stored secrets.

import { stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Installation } from '../routes/operator-tools.ts'
import type { Finding } from './finding.ts'

const MIB = 1024 * 1024
/** With less than this, a burst of messages fills the disk before anybody reacts. */
const LEAST_FREE_BYTES = 256 * MIB

export async function checkDisk(storePath: string, storedBytes: number | null): Promise<Finding> {
  try {
    const { bavail, bsize } = await statfs(dirname(storePath))
    return judgeDisk(bavail * bsize, storedBytes)
  } catch (error) {
    return { state: 'unknown', message: `The free disk space could not be read: ${(error as Error).message}.`, advice: null }
  }
}

export function judgeDisk(freeBytes: number, storedBytes: number | null): Finding {
  const message = `${inMib(freeBytes)} of disk space is free${storedBytes === null ? '' : `, and the store uses ${inMib(storedBytes)}`}.`
  if (freeBytes < LEAST_FREE_BYTES)
    return { state: 'bad', message, advice: 'Free disk space. When the disk is full, the service rejects messages with status 503.' }
  if (storedBytes !== null && freeBytes < storedBytes)
    return {
      state: 'warning',
      message,
      advice: 'There is not enough space for a backup. Free disk space, or lower SWITCHYARD_RETENTION_DAYS.',
    }
  return { state: 'good', message, advice: null }
}

export async function checkSecretKey({ secretKey }: Installation): Promise<Finding> {
  if (secretKey.from === 'environment')
    return { state: 'good', message: 'The key that encrypts stored secrets is in SWITCHYARD_SECRET_KEY.', advice: null }
  const { path } = secretKey
  try {
    const { mode } = await stat(path)
    const bits = (mode & 0o777).toString(8).padStart(3, '0')
    if ((mode & 0o077) !== 0 && process.platform !== 'win32')
      return {
        state: 'bad',
        message: `Other users can read the key that encrypts stored secrets: ${path} has mode ${bits}.`,
        advice: `chmod 600 ${path}`,
      }
    return { state: 'good', message: `The key that encrypts stored secrets is in ${path}, and only its owner can read it.`, advice: null }
  } catch {
    return {
      state: 'bad',
      message: `The key that encrypts stored secrets is missing: ${path} cannot be read.`,
      advice: 'Restore the file before you restart the service. Without it, stored secrets cannot be decrypted.',
    }
  }
}

function inMib(bytes: number): string {
  return bytes < 10 * MIB ? `${Math.ceil(bytes / 1024)} KiB` : `${Math.floor(bytes / MIB)} MiB`
}
