// The form for the settings of a warehouse: where its tables are, when messages are loaded, and what is kept.

import { NumberInput, Radio, Select, SimpleGrid, Stack, Switch, TextInput } from '@mantine/core'
import { SecretInput, ticked } from '../../../components/inputs.tsx'
import { Note } from '../../../components/styled.tsx'
import { type EditForm, type FieldsProps, numberInput, textInput } from '../../../destination/form/field-state.ts'
import { exactCount } from '../../../text/format.ts'
import {
  type Place,
  partsOf,
  patchBodyOf,
  type Warehouse,
  type WarehouseDraft,
  warehouseDraftOf,
  warehouseFieldOf,
  warehouseProblems,
} from './warehouse-draft.ts'

type Props = FieldsProps<WarehouseDraft>

const PLACES: readonly { value: Place; label: string; description: string }[] = [
  {
    value: 'folder',
    label: 'Folder',
    description: 'A lake of Parquet files on the machine of the service. Can be queried on the page SQL.',
  },
  { value: 'bucket', label: 'Bucket', description: 'A lake of Parquet files in S3 or another store with its interface.' },
  { value: 'postgres', label: 'PostgreSQL', description: 'Tables in a database, one schema for each source.' },
  { value: 'clickhouse', label: 'ClickHouse', description: 'Tables in a database, one database for each source.' },
]
const FIELDS_OF: Readonly<Record<Place, (props: Props) => React.ReactNode>> = {
  folder: FolderFields,
  bucket: BucketFields,
  postgres: PostgresFields,
  clickhouse: ClickHouseFields,
}
/** As the driver reads `sslmode`: without it, the connection is not encrypted. */
const TLS = [
  { value: '', label: 'Not encrypted' },
  { value: 'verify-full', label: 'Encrypted, with a valid certificate' },
  { value: 'no-verify', label: 'Encrypted, with any certificate' },
]

export const WAREHOUSE_FORM: EditForm<Warehouse, WarehouseDraft> = {
  draftOf: warehouseDraftOf,
  patchOf: patchBodyOf,
  editedElsewhere: [],
  problemsOf: warehouseProblems,
  fieldOf: warehouseFieldOf,
  settings: (props) => <PlaceFields {...props} isNew={false} />,
  sections: [
    {
      name: 'loads',
      title: 'Loads',
      fields: /^load/,
      note: ({ every, maxRows }) =>
        `every ${every}, or ${maxRows === null ? 'as soon as many' : `when ${exactCount(maxRows)}`} messages wait`,
      isUsed: () => false,
      Fields: LoadFields,
    },
    {
      name: 'kept',
      title: 'Kept days and existing tables',
      fields: /^warehouse\.keepDays/,
      note: ({ keepDays, adopt }) =>
        `${keepDays === null ? 'everything is kept' : `${keepDays} days`}${adopt ? ', existing tables are continued' : ''}`,
      isUsed: ({ keepDays, adopt }) => keepDays !== null || adopt,
      Fields: KeptFields,
    },
  ],
  descriptions: {
    batchSize: 'Has no effect on a warehouse, and must be 1: see Loads.',
    timeout: 'Up to 10 min for a load. A load that takes longer is repeated, and continues where it was.',
  },
}

export const NEW_WAREHOUSE_FORM: typeof WAREHOUSE_FORM = { ...WAREHOUSE_FORM, settings: (props) => <PlaceFields {...props} isNew /> }

function PlaceFields({ isNew, ...props }: Props & { isNew: boolean }) {
  const { draft, state } = props
  const Fields = FIELDS_OF[draft.place]
  return (
    <>
      {isNew && (
        <Radio.Group label="Where the tables are" value={draft.place} onChange={(place) => state.set({ place, secret: '' })}>
          <SimpleGrid cols={{ base: 1, sm: 2 }} mt="xs">
            {PLACES.map((each) => (
              <Radio key={each.value} {...each} />
            ))}
          </SimpleGrid>
        </Radio.Group>
      )}
      <Fields {...props} />
    </>
  )
}

function FolderFields({ draft, state }: Props) {
  return (
    <TextInput
      label="Folder"
      description="Is created if it does not exist. It must be below the folder of lakes (SWITCHYARD_LAKE_DIR), which is the folder lake beside a SQLite store."
      placeholder="file:///var/lib/switchyard/lake/main"
      required
      spellCheck={false}
      {...textInput(state, 'warehouse.url', draft.folder, (folder) => ({ folder }))}
    />
  )
}

function BucketFields({ draft, state }: Props) {
  return (
    <>
      <TextInput
        label="Bucket and prefix"
        description="The bucket must exist. Every lake needs its own prefix."
        placeholder="s3://bucket/prefix"
        required
        spellCheck={false}
        {...textInput(state, 'warehouse.url', draft.bucket, (bucket) => ({ bucket }))}
      />
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <TextInput
          label="Region"
          description="Such as eu-central-1."
          {...textInput(state, 'warehouse.region', draft.region, (region) => ({ region }))}
        />
        <TextInput
          label="Endpoint"
          description="For a store that is not AWS."
          placeholder="https://s3.example.com"
          {...textInput(state, 'warehouse.endpoint', draft.endpoint, (endpoint) => ({ endpoint }))}
        />
        <TextInput
          label="Access key"
          description="Needs s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket."
          required
          {...textInput(state, 'warehouse.accessKeyId', draft.accessKeyId, (accessKeyId) => ({ accessKeyId }))}
        />
        <Secret draft={draft} state={state} label="Secret of the access key" field="warehouse.secretAccessKey" required />
      </SimpleGrid>
      <Switch
        label="Bucket in the path"
        description="For stores that do not have a host name for each bucket, such as MinIO."
        {...ticked(draft.pathStyle, (pathStyle) => state.set({ pathStyle }))}
        disabled={state.isReadOnly}
      />
    </>
  )
}

function PostgresFields({ draft, state }: Props) {
  return (
    <>
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <TextInput
          label="Host"
          description="A host name. You can also paste a whole postgres:// URL."
          placeholder="db.example.com"
          required
          spellCheck={false}
          {...textInput(state, 'warehouse.url', draft.host, (host) => ({ host, ...partsOf(host.trim()) }))}
        />
        <TextInput
          label="Port"
          description="5432 if it is empty."
          placeholder="5432"
          inputMode="numeric"
          {...textInput(state, 'warehouse.port', draft.port, (port) => ({ port }))}
        />
        <TextInput
          label="Database"
          description="It must exist."
          required
          {...textInput(state, 'warehouse.database', draft.database, (database) => ({ database }))}
        />
        <TextInput
          label="Schema"
          description="If it is empty, each source has a schema with its name."
          {...textInput(state, 'warehouse.schema', draft.schema, (schema) => ({ schema }))}
        />
        <TextInput
          label="User"
          description="Needs the permission CREATE on the database, or owns the schema."
          required
          data-1p-ignore
          {...textInput(state, 'warehouse.user', draft.user, (user) => ({ user }))}
        />
        <Secret draft={draft} state={state} label="Password" field="warehouse.password" />
      </SimpleGrid>
      <Select
        label="TLS"
        description="Whether the connection is encrypted (sslmode)."
        data={TLS.some(({ value }) => value === draft.tls) ? TLS : [...TLS, { value: draft.tls, label: draft.tls }]}
        value={draft.tls}
        onChange={(tls) => state.set({ tls: tls ?? '' })}
        allowDeselect={false}
        readOnly={state.isReadOnly}
      />
    </>
  )
}

function ClickHouseFields({ draft, state }: Props) {
  return (
    <>
      <TextInput
        label="Address"
        description="Of the HTTP interface."
        placeholder="https://clickhouse.example.com:8443"
        required
        spellCheck={false}
        {...textInput(state, 'warehouse.url', draft.http, (http) => ({ http }))}
      />
      <TextInput
        label="Database"
        description="Each source needs its own database, which must exist. {source} in the name is replaced by the name of the source in snake case."
        placeholder="analytics_{source}"
        required
        {...textInput(state, 'warehouse.database', draft.database, (database) => ({ database }))}
      />
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <TextInput
          label="User"
          description="May create, alter and drop tables, and insert and select."
          required
          data-1p-ignore
          {...textInput(state, 'warehouse.user', draft.user, (user) => ({ user }))}
        />
        <Secret draft={draft} state={state} label="Password" field="warehouse.password" />
      </SimpleGrid>
    </>
  )
}

function Secret({ draft, state, label, field, required = false }: Props & { label: string; field: string; required?: boolean }) {
  return (
    <SecretInput
      label={label}
      description={draft.hasSecret ? 'Leave it empty to keep the stored one.' : 'Stored encrypted, and never shown again.'}
      placeholder={draft.hasSecret ? 'stored' : ''}
      required={required && !draft.hasSecret}
      {...textInput(state, field, draft.secret, (secret) => ({ secret }))}
    />
  )
}

function LoadFields({ draft, state }: Props) {
  return (
    <Stack>
      <Note>Waiting messages are loaded together. Fewer and larger loads make fewer files, and cost a database less.</Note>
      <SimpleGrid cols={{ base: 1, sm: 3 }}>
        <TextInput label="Every" description="1 s to 1 d." {...textInput(state, 'load.everyMs', draft.every, (every) => ({ every }))} />
        <NumberInput
          label="Or when so many messages wait"
          description="At most 200,000."
          {...numberInput(state, 'load.maxRows', draft.maxRows, (maxRows) => ({ maxRows }))}
        />
        <NumberInput
          label="Or so many MiB"
          description="At most 64."
          {...numberInput(state, 'load.maxBytes', draft.maxMib, (maxMib) => ({ maxMib }))}
          allowDecimal
        />
      </SimpleGrid>
    </Stack>
  )
}

function KeptFields({ draft, state }: Props) {
  return (
    <>
      <NumberInput
        label="Days that are kept"
        description="Older rows are removed once a day, also from the archive of a lake. Leave it empty to keep everything."
        maw={320}
        {...numberInput(state, 'warehouse.keepDays', draft.keepDays, (keepDays) => ({ keepDays }))}
      />
      <Switch
        label="Continue existing tables"
        description="Otherwise a place that has tables of another installation or destination is refused."
        {...ticked(draft.adopt, (adopt) => state.set({ adopt }))}
        disabled={state.isReadOnly}
      />
    </>
  )
}
