// The steps of the schema from the sixth on. The first five, and what holds for all steps, are in migrations.ts.

import type { SecretBox } from '../../../secrets/secret-box.ts'
import type { Ask } from '../session/database.ts'

export interface Migration {
  /** The lowest step whose code still works after this one was applied; the step itself if no older code works. */
  worksFrom: number
  /** The step is run only when no node is running: nodes of the previous version cannot work with its result. */
  alone?: true
  sql: string
  /** Changes that SQL cannot make. Runs after the SQL, in the same transaction. */
  work?: (ask: Ask, box: SecretBox) => Promise<void>
}

export const MIGRATIONS_FROM_6: readonly Migration[] = [
  {
    // Nodes of the previous version reject tokens with limits, and write audit entries without sources.
    worksFrom: 5,
    sql: `
  -- What a token is limited to: see resource-rows.ts. Null: nothing.
  ALTER TABLE tokens ADD COLUMN limits text;
  -- The type and the owner of the actor, and the ids of the sources that the change concerns, as JSON: see audit-log.ts.
  ALTER TABLE audit ADD COLUMN actor_about text, ADD COLUMN sources text;
  `,
  },
  {
    // Nodes of the previous version do not claim rows with a negative attempt. They know no setting `order`, so what they accept has no keys.
    worksFrom: 5,
    sql: `
  -- Shipments whose messages are delivered in order have a negative attempt, so that no scan for other work finds them: -1 - n after n attempts.
  -- 'ord' is the place in the order of acceptance, 'partition' is its partition, and 'key' the key of those that wait behind others of their key.
  ALTER TABLE shipments ADD COLUMN ord bigint, ADD COLUMN partition integer, ADD COLUMN key bigint;
  CREATE SEQUENCE order_places;
  CREATE INDEX shipments_ordered ON shipments (destination, id) WHERE holder < 1 AND attempt < 0;
  CREATE INDEX shipments_ordered_fresh ON shipments (destination, partition, ord, id) WHERE holder < 1 AND attempt = -1 AND key IS NULL;
  CREATE INDEX shipments_ordered_heads ON shipments (destination, partition, due, id) WHERE holder < 1 AND attempt < -1;
  CREATE INDEX shipments_ordered_waiting ON shipments (destination, key, ord, id) WHERE holder < 1 AND attempt = -1 AND key IS NOT NULL;

  -- The keys that are not free, as hashes: see model/order/key-states.ts. The message is the head, or the one that holds the key. 'due' is that
  -- of the head when it was stored. 'skip': an operator ends the head when its running attempt is over.
  CREATE TABLE order_keys (
    destination bigint NOT NULL,
    key bigint NOT NULL,
    state text NOT NULL,
    since bigint NOT NULL,
    segment bigint,
    origin bigint,
    idx integer,
    due bigint,
    skip boolean NOT NULL DEFAULT false,
    waiting bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (destination, key)
  );
  CREATE INDEX order_keys_by_state ON order_keys (destination, state, since, key);

  -- Whether the replay is the head of its key. Other replays are outside the order.
  ALTER TABLE replays ADD COLUMN resumed boolean NOT NULL DEFAULT false;

  -- Which node delivers the ordered messages of each partition, of all destinations: the holder id of the node, or 0 for none.
  CREATE TABLE order_partitions (part integer PRIMARY KEY, owner bigint NOT NULL DEFAULT 0);
  INSERT INTO order_partitions (part) SELECT generate_series(0, 15);
  -- A node that was declared dead held work of these partitions. It may have started requests until this time of the server, in milliseconds.
  CREATE TABLE order_waits (destination bigint NOT NULL, part integer NOT NULL, started_until bigint NOT NULL, PRIMARY KEY (destination, part));
    `,
  },
  {
    // Nodes of the previous version leave the new columns as they are.
    worksFrom: 5,
    sql: `
  -- What operators see of keys: the attempts of the head so far, and how the message that holds the key ended. 'segment' finds the keys of deleted messages.
  ALTER TABLE order_keys ADD COLUMN attempts integer NOT NULL DEFAULT 0, ADD COLUMN ended text;
  CREATE INDEX order_keys_by_segment ON order_keys (segment) WHERE segment IS NOT NULL;
  -- Keys with so many waiting messages that the limit of a destination may be exceeded. The smallest limit is 100.
  CREATE INDEX order_keys_crowded ON order_keys (destination, waiting) WHERE waiting > 99;
  -- Heads that expire without another attempt.
  CREATE INDEX shipments_ordered_by_first_attempt ON shipments (destination, first_attempt) WHERE holder < 1 AND attempt < -1;
    `,
  },
]
