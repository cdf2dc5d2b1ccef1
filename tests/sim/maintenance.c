#include "maintenance.h"

#include "base/buf.h"
#include "base/memory/arena.h"
#include "base/xalloc.h"
#include "bolt/reader.h"
#include "bolt/schema.h"
#include "codec/pb/kv.pb.h"
#include "coverage.h"
#include "history.h"
#include "operations.h"
#include "trace.h"

#include <stdlib.h>
#include <string.h>

enum { SNAPSHOTS_MAX = 64, HASHES_MAX = 256, DIGEST_BYTES = 32 };

struct snapshot {
    int64_t revision;          /* the newest */
    int64_t compacted_ceiling; /* when it was complete */
    struct version *versions;  /* owned */
    size_t count, room;
    bool checked;
};

struct hash {
    int64_t compacted, revision;
    uint32_t value;
};

static struct {
    struct snapshot snapshots[SNAPSHOTS_MAX];
    unsigned snapshot_count;
    struct hash hashes[HASHES_MAX];
    unsigned hash_count;
} maintenance;

void maintenance_begin(void)
{
    maintenance.snapshot_count = maintenance.hash_count = 0;
}

void maintenance_end(void)
{
    for (unsigned i = 0; i < maintenance.snapshot_count; i++)
        free(maintenance.snapshots[i].versions);
    maintenance.snapshot_count = 0;
}

/* -- Reading a snapshot -- */

static enum status read_bytes(void *ctx, void *to, size_t len, uint64_t offset)
{
    const struct buf *bytes = ctx;
    memcpy(to, bytes->ptr + offset, len);
    return ST_OK;
}

static void add_version(struct snapshot *snapshot, const struct bolt_entry *entry)
{
    struct arena arena;
    struct bolt_revision revision;
    struct pb_key_value kv;
    arena_init(&arena, NULL, 0, 1 << 20);
    if (!bolt_revision_read(entry->key, &revision) ||
        pb_decode(&pb_key_value_table, entry->value, &arena, &kv) != ST_OK)
        violation("a snapshot has an entry that is not a version of a key");
    struct version version = {
        .revision = revision.main,
        .created = kv.create_revision,
        .number = revision.is_tombstone ? 0 : kv.version,
        .lease = kv.lease,
    };
    version_set_key(&version, kv.key.ptr, kv.key.len);
    version_set_value(&version, kv.value.ptr, kv.value.len);
    arena_fini(&arena);
    if (snapshot->count == snapshot->room) {
        snapshot->room = snapshot->room ? 2 * snapshot->room : 64;
        snapshot->versions = xrealloc(snapshot->versions, snapshot->room * sizeof(version));
    }
    snapshot->versions[snapshot->count++] = version;
    if (version.revision > snapshot->revision)
        snapshot->revision = version.revision;
}

static void read_snapshot(struct snapshot *snapshot, struct buf *file)
{
    struct bolt_reader reader;
    struct bolt_cursor cursor;
    struct bolt_entry entry;
    struct bolt_source source = {
        .read = read_bytes, .ctx = file, .bytes = file->len - DIGEST_BYTES};
    if (bolt_reader_init(&reader, source) != ST_OK ||
        bolt_cursor_init_named(&cursor, &reader, bolt_bucket_name(BOLT_BUCKET_KEY)) != ST_OK)
        violation("a snapshot cannot be read: %s", reader.error.text);
    enum status status;
    while ((status = bolt_cursor_next(&cursor, &entry)) == ST_OK)
        add_version(snapshot, &entry);
    if (status != ST_END)
        violation("a snapshot cannot be read: %s", reader.error.text);
    bolt_cursor_fini(&cursor);
}

static int on_part(vigil_call *call, const vigil_snapshot_part *part, void *user)
{
    (void)call;
    enum status status = buf_append(user, slice_of(part->blob.data, part->blob.size));
    assert(status == ST_OK);
    return VIGIL_PART_CONTINUE;
}

static void do_snapshot(vigil_client *client)
{
    struct buf file = {0};
    vigil_call *call = vigil_snapshot(client, on_part, &file);
    vigil_call_set_timeout(call, 10000);
    int code = vigil_call_run(call);
    if (code == VIGIL_OK && maintenance.snapshot_count < SNAPSHOTS_MAX) {
        struct snapshot *snapshot = &maintenance.snapshots[maintenance.snapshot_count++];
        *snapshot = (struct snapshot){.compacted_ceiling = operations_compacted_ceiling()};
        read_snapshot(snapshot, &file);
        trace_line("snapshot: %zu versions up to revision %lld", snapshot->count,
                   (long long)snapshot->revision);
        maintenance_check_known();
    } else {
        trace_line("snapshot: %s", vigil_call_error(call)->text);
    }
    vigil_call_free(call);
    buf_fini(&file);
}

/* -- Checking a snapshot -- */

static bool is_same(const struct version *a, const struct version *b)
{
    return a->revision == b->revision && strcmp(a->key, b->key) == 0 && a->number == b->number &&
           (!a->number || strcmp(a->value, b->value) == 0);
}

static bool is_in_history(const struct version *version)
{
    for (size_t i = 0; i < history_count(); i++)
        if (is_same(version, history_at(i)))
            return true;
    return false;
}

static bool is_in_snapshot(const struct snapshot *snapshot, const struct version *version)
{
    for (size_t i = 0; i < snapshot->count; i++)
        if (is_same(&snapshot->versions[i], version))
            return true;
    return false;
}

/* If revisions after the newest one were compacted, they may have deleted keys. */
static void check_snapshot(const struct snapshot *snapshot)
{
    const struct version *expected[RANGE_MAX];
    for (size_t i = 0; i < snapshot->count; i++)
        if (!is_in_history(&snapshot->versions[i]))
            violation("a snapshot has %s = %s @%lld, which is not in the history",
                      snapshot->versions[i].key, snapshot->versions[i].value,
                      (long long)snapshot->versions[i].revision);
    if (snapshot->compacted_ceiling > snapshot->revision)
        return;
    size_t count = history_range(" ", "~", snapshot->revision, expected);
    for (size_t i = 0; i < count; i++)
        if (!is_in_snapshot(snapshot, expected[i]))
            violation("a snapshot of revision %lld does not have %s @%lld",
                      (long long)snapshot->revision, expected[i]->key,
                      (long long)expected[i]->revision);
}

void maintenance_check_known(void)
{
    for (unsigned i = 0; i < maintenance.snapshot_count; i++) {
        struct snapshot *snapshot = &maintenance.snapshots[i];
        if (snapshot->checked || snapshot->revision > history_revision())
            continue;
        check_snapshot(snapshot);
        snapshot->checked = true;
    }
}

/* -- Hashes and defragmentation -- */

static void note_hash(const struct hash *hash)
{
    for (unsigned i = 0; i < maintenance.hash_count; i++) {
        const struct hash *known = &maintenance.hashes[i];
        if (known->compacted == hash->compacted && known->revision == hash->revision &&
            known->value != hash->value)
            violation("the hash of revisions %lld to %lld was %08x and is %08x now",
                      (long long)hash->compacted, (long long)hash->revision, known->value,
                      hash->value);
    }
    if (maintenance.hash_count < HASHES_MAX)
        maintenance.hashes[maintenance.hash_count++] = *hash;
}

static void do_hash(vigil_client *client, struct random *random)
{
    int64_t revision = (int64_t)random_below(random, (uint64_t)history_revision() + 1);
    vigil_call *call = vigil_hash_kv(client, revision);
    int code = vigil_call_run(call);
    trace_line("hash of revision %lld: %s", (long long)revision, vigil_call_error(call)->text);
    const vigil_hash_kv_response *result = vigil_hash_kv_result(call);
    if (code == VIGIL_OK)
        note_hash(&(struct hash){.compacted = result->compact_revision,
                                 .revision = result->hash_revision,
                                 .value = result->hash});
    vigil_call_free(call);
}

static void do_defragment(vigil_client *client)
{
    vigil_call *call = vigil_defragment(client);
    (void)vigil_call_run(call);
    trace_line("defragmentation: %s", vigil_call_error(call)->text);
    vigil_call_free(call);
}

void maintenance_do(vigil_client *client, struct random *random)
{
    uint64_t dice = random_below(random, 5);
    coverage_add(dice < 1 ? COVERAGE_SNAPSHOT : dice < 4 ? COVERAGE_HASH : COVERAGE_DEFRAGMENT);
    if (dice < 1)
        do_snapshot(client);
    else if (dice < 4)
        do_hash(client, random);
    else
        do_defragment(client);
}
