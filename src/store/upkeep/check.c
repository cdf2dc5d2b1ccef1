#include "store/upkeep/check.h"

#include "base/buf.h"
#include "base/xalloc.h"
#include "store/log/damage.h"
#include "store/record/change.h"

#include <stdlib.h>

/*
 * The cost in bytes of examining one record or version besides its bytes, so that many small ones
 * end a step too.
 */
enum { LOOK_BYTES = 256 };

struct store_check {
    store_check_fn fn;
    void *ctx;
    struct store_check_counts counts;
    bool log_done;
    struct log_reader reader; /* its log is NULL before the first step */
    struct buf from;          /* the key at which the check of the index continues */
};

struct store_check *store_check_new(store_check_fn fn, void *ctx)
{
    struct store_check *check = xcalloc(1, sizeof(*check));
    check->fn = fn;
    check->ctx = ctx;
    return check;
}

void store_check_free(struct store_check *check)
{
    if (!check)
        return;
    buf_fini(&check->from);
    free(check);
}

struct store_check_counts store_check_counts(const struct store_check *check)
{
    return check->counts;
}

static void spend(size_t *bytes, size_t spent)
{
    *bytes -= size_min(*bytes, spent + LOOK_BYTES);
}

static void report(struct store_check *check, const char *what, log_loc loc, struct slice key)
{
    struct store_check_damage damage = {.what = what, .key = key};
    log_loc_split(loc, &damage.segment_id, &damage.offset);
    check->fn(check->ctx, &damage);
}

/* -- The log -- */

/* True at the end. */
static bool check_log(struct store_check *check, const struct store_view *view,
                      const struct log *log, size_t *bytes)
{
    struct log_reader *reader = &check->reader;
    /* The cleaner may have removed the segment since the last step; then the record is found again
     * by its index. */
    if (!reader->log || !log_reader_is_current(reader))
        log_reader_init(reader, log, reader->next_index);
    while (*bytes) {
        struct log_record record;
        enum status status = log_reader_next(&check->reader, view->log_index, &record);
        if (status == ST_END)
            return true;
        check->counts.records++;
        if (status == ST_OK) {
            spend(bytes, record.body.len);
            continue;
        }
        check->counts.bad_records++;
        report(check, "a record of the log is damaged", log_reader_loc(&check->reader),
               SLICE_EMPTY);
        log_reader_pass_damage(&check->reader);
        spend(bytes, LOOK_BYTES);
    }
    return false;
}

/* -- The index -- */

static bool is_newest(const struct index_item *item, const struct change_head *head,
                      const struct change_kv *kv)
{
    const struct index_version *newest = &item->newest;
    if (head->revision != newest->mod_revision || head->sub != newest->sub_revision)
        return false;
    if (change_is_tombstone(head))
        return !index_item_live(item);
    return head->field_bytes == newest->field_bytes && kv->mod_revision == newest->mod_revision &&
           kv->create_revision == newest->create_revision && kv->version == newest->version &&
           kv->lease == newest->lease;
}

/* What the next newer version says about a version; versions are examined from the newest on. */
struct later {
    int64_t revision; /* the version is not newer than this */
    int64_t prev;     /* revision of the version; 0 if unknown */
};

static bool check_version(struct store_check *check, const struct log *log,
                          const struct index_item *item, log_loc loc, struct later *later,
                          size_t *bytes)
{
    const struct change_head *head;
    struct change_kv kv;
    check->counts.versions++;
    if (change_get(log, loc, &head) != ST_OK) {
        report(check, "a version of a key is damaged", loc, index_item_key(item));
        *later = (struct later){.revision = later->prev ? later->prev : later->revision};
        return false;
    }
    spend(bytes, head->field_bytes);
    change_read_kv(head, &kv);
    bool agrees = slice_equal(kv.key, index_item_key(item)) && head->revision <= later->revision &&
                  (loc != item->newest.loc || is_newest(item, head, &kv));
    if (!agrees)
        report(check, "the index and the log do not agree on a key", loc, index_item_key(item));
    *later = (struct later){head->revision, head->prev_revision};
    return agrees;
}

/*
 * No client can read versions that were replaced before the compacted revision. If the record that
 * replaced them cannot be read, compaction may have skipped them, and the log may have dropped
 * them.
 */
static void check_item(struct store_check *check, const struct store_view *view,
                       const struct log *log, const struct index_item *item, size_t *bytes)
{
    struct later later = {item->newest.mod_revision, item->newest.mod_revision};
    bool good = check_version(check, log, item, item->newest.loc, &later, bytes);
    check->counts.bad_versions += !good;
    for (uint32_t place = item->older_count; place-- > 0;) {
        if (later.revision < view->compact_revision)
            return;
        good = check_version(check, log, item, index_item_older(item)[place], &later, bytes);
        check->counts.bad_versions += !good;
    }
}

/* True at the end. */
static bool check_index(struct store_check *check, const struct store_view *view,
                        const struct log *log, size_t *bytes)
{
    struct index_cursor cursor;
    index_cursor_init(&cursor, &view->root, buf_slice(&check->from));
    for (;;) {
        const struct index_item *item = index_cursor_next(&cursor);
        if (!item)
            return true;
        if (!*bytes) {
            struct slice key = index_item_key(item);
            buf_reset(&check->from, SIZE_MAX);
            xalloc_check(buf_append(&check->from, key) == ST_OK ? check : NULL, key.len);
            return false;
        }
        check_item(check, view, log, item, bytes);
    }
}

enum status store_check_step(struct store_check *check, const struct store_view *view,
                             const struct log *log, size_t bytes)
{
    if (!check->log_done)
        check->log_done = check_log(check, view, log, &bytes);
    if (!check->log_done || !bytes)
        return ST_AGAIN;
    return check_index(check, view, log, &bytes) ? ST_OK : ST_AGAIN;
}
