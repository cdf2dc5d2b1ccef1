/* vigil diff: what has changed between two revisions. */
#include "base/xalloc.h"
#include "cmd/ctl/decode/safe_text.h"
#include "cmd/ctl/decode/terminal.h"
#include "cmd/ctl/explore/explore.h"
#include "cmd/ctl/explore/kv_view.h"
#include "cmd/ctl/explore/pager.h"
#include "cmd/ctl/explore/value_view.h"

#include <inttypes.h>

enum {
    BATCH_MAX = 64, /* changes whose values are read together: etcd allows 128 operations */
    BATCH_KEY_BYTES = 1 << 20 /* size of their keys */
};

/* A key that differs. */
struct change {
    size_t key_at, key_len; /* in differ.keys */
    bool was, is;           /* in the old state, in the new one */
};

/*
 * Both states are read in the order of the keys and merged. Only the keys are read at first: a key
 * with the same mod_revision in both states has not changed. The values of the others are read in
 * batches, one transaction each. If that fails, for instance because the answer would be too large,
 * they are read one by one, and later batches are half as large.
 */
struct differ {
    struct ctl *ctl;
    vigil_client *client;
    const struct diff_flags *flags;
    struct value_view view;
    bool json;
    int64_t from, to;
    struct change batch[BATCH_MAX];
    size_t batch_count, batch_max;
    struct buf keys; /* keys of the batch */
    uint64_t differences;
    int exit;
};

static struct slice key_of(const vigil_kv *kv)
{
    return slice_of(kv->key.data, kv->key.size);
}

static const vigil_kv *first_of(struct differ *d, const vigil_range_response *range,
                                int64_t revision)
{
    if (range->kv_count > 0)
        return &range->kvs[0];
    d->exit = ctl_fail(d->ctl, CTL_ERROR, "the server no longer has revision %" PRId64, revision);
    return NULL;
}

static vigil_range_request request_of(struct slice key, int64_t revision)
{
    vigil_range_request request;
    vigil_range_request_init(&request);
    request.key = vigil_bytes_of(key.ptr, key.len);
    request.revision = revision;
    return request;
}

/* The key with its value at a revision; NULL: it could not be read, or a key that was listed is
 * gone, which only a server that breaks its promise does. */
static const vigil_kv *read_value(struct differ *d, struct slice key, int64_t revision,
                                  vigil_call **ret_call)
{
    vigil_range_request request = request_of(key, revision);
    *ret_call = vigil_range(d->client, &request);
    if (vigil_call_run(*ret_call) != VIGIL_OK) {
        d->exit = ctl_fail_with(d->ctl, vigil_call_error(*ret_call));
        return NULL;
    }
    return first_of(d, vigil_range_result(*ret_call), revision);
}

/* -- Output; before or after is NULL: the key was added or removed -- */

static void put_json(struct differ *d, struct slice key, const vigil_kv *before,
                     const vigil_kv *after)
{
    AUTO(buf_fini) struct buf line = {0};
    struct json_writer w;
    enum decode_kind decode = (enum decode_kind)d->ctl->globals.decode;
    json_writer_init(&w, &line);
    json_begin_object(&w);
    json_member_text(&w, "change", !before ? "added" : !after ? "removed" : "changed");
    decode_put_member(&w, "key", DECODE_TEXT, key);
    for (unsigned i = 0; i < 2; i++) {
        const vigil_kv *kv = i ? after : before;
        if (!kv)
            continue;
        json_member_i64(&w, i ? "after_revision" : "before_revision", kv->mod_revision);
        if (!d->flags->brief)
            decode_put_member(&w, i ? "after" : "before", decode,
                              slice_of(kv->value.data, kv->value.size));
    }
    json_end_object(&w);
    kv_view_put_line(d->ctl->out, &w);
}

static void put_head(struct differ *d, struct slice key, const vigil_kv *before,
                     const vigil_kv *after)
{
    FILE *out = d->ctl->out;
    value_view_colour(&d->view, !before ? TERMINAL_GREEN : !after ? TERMINAL_RED : TERMINAL_YELLOW);
    fprintf(out, "%c ", !before ? '+' : !after ? '-' : '~');
    safe_text_put_short(out, key, VALUE_VIEW_COLUMNS_MAX);
    value_view_colour(&d->view, TERMINAL_PLAIN);
    fputs("  revision ", out);
    if (before)
        fprintf(out, "%" PRId64 "%s", before->mod_revision, after ? " > " : "");
    if (after)
        fprintf(out, "%" PRId64, after->mod_revision);
    fputc('\n', out);
}

static void put_text(struct differ *d, struct slice key, const vigil_kv *before,
                     const vigil_kv *after)
{
    put_head(d, key, before, after);
    if (d->flags->brief)
        return;
    if (before && after)
        value_view_difference(&d->view, slice_of(before->value.data, before->value.size),
                              slice_of(after->value.data, after->value.size));
    else if (after)
        value_view_put(&d->view, LINE_ADDED, slice_of(after->value.data, after->value.size));
    else if (before)
        value_view_put(&d->view, LINE_REMOVED, slice_of(before->value.data, before->value.size));
}

/* -- Comparing -- */

static void show(struct differ *d, struct slice key, const vigil_kv *before, const vigil_kv *after)
{
    d->differences++;
    if (d->json)
        put_json(d, key, before, after);
    else
        put_text(d, key, before, after);
}

static struct slice changed_key(const struct differ *d, const struct change *change)
{
    return slice_of(d->keys.ptr + change->key_at, change->key_len);
}

/* Reads both values of a change, and shows it. */
static void show_one(struct differ *d, const struct change *change)
{
    vigil_call *old = NULL, *now = NULL;
    struct slice key = changed_key(d, change);
    const vigil_kv *before = change->was ? read_value(d, key, d->from, &old) : NULL;
    const vigil_kv *after =
        change->is && d->exit == CTL_OK ? read_value(d, key, d->to, &now) : NULL;
    if (d->exit == CTL_OK)
        show(d, key, before, after);
    vigil_call_free(old);
    vigil_call_free(now);
}

/* Reads all values of the batch. */
static vigil_call *read_batch(const struct differ *d)
{
    vigil_txn *txn = vigil_txn_new(d->client);
    for (size_t i = 0; i < d->batch_count; i++) {
        struct slice key = changed_key(d, &d->batch[i]);
        vigil_range_request before = request_of(key, d->from), after = request_of(key, d->to);
        if (d->batch[i].was)
            vigil_txn_range(txn, &before);
        if (d->batch[i].is)
            vigil_txn_range(txn, &after);
    }
    vigil_call *call = vigil_txn_call(txn);
    vigil_txn_free(txn);
    vigil_call_run(call);
    return call;
}

/* The values are in the answers of a transaction. */
static void show_batch(struct differ *d, const vigil_op_response *answers)
{
    for (size_t i = 0; i < d->batch_count && d->exit == CTL_OK; i++) {
        const struct change *change = &d->batch[i];
        const vigil_kv *before = change->was ? first_of(d, answers++->as.range, d->from) : NULL;
        const vigil_kv *after =
            change->is && d->exit == CTL_OK ? first_of(d, answers++->as.range, d->to) : NULL;
        if (d->exit == CTL_OK)
            show(d, changed_key(d, change), before, after);
    }
}

static void flush_batch(struct differ *d)
{
    vigil_call *call = d->batch_count > 1 && d->exit == CTL_OK ? read_batch(d) : NULL;
    const vigil_txn_response *all = call ? vigil_txn_result(call) : NULL;
    if (all)
        show_batch(d, all->responses);
    for (size_t i = 0; !all && i < d->batch_count && d->exit == CTL_OK; i++)
        show_one(d, &d->batch[i]);
    if (call && !all)
        d->batch_max = size_max(1, d->batch_max / 2);
    vigil_call_free(call);
    d->batch_count = 0;
    d->keys.len = 0;
}

/* Shows a difference now, or with its batch if values are wanted. */
static void report(struct differ *d, struct slice key, const vigil_kv *before,
                   const vigil_kv *after)
{
    if (d->flags->brief) {
        show(d, key, before, after);
        return;
    }
    d->batch[d->batch_count++] = (struct change){d->keys.len, key.len, before, after};
    xalloc_check(buf_append(&d->keys, key) == ST_OK ? d : NULL, key.len);
    if (d->batch_count == d->batch_max || d->keys.len >= BATCH_KEY_BYTES)
        flush_batch(d);
}

static void note_failure(struct differ *d, const struct pager *old, const struct pager *now)
{
    if (d->exit == CTL_OK)
        d->exit = old->exit != CTL_OK ? old->exit : now->exit;
}

static void merge(struct differ *d, struct pager *old, struct pager *now)
{
    const vigil_kv *before = pager_next(old), *after = old->exit == CTL_OK ? pager_next(now) : NULL;
    note_failure(d, old, now);
    while ((before || after) && d->exit == CTL_OK) {
        /* Negative: the key is only in the old state, positive: only in the new one. */
        int order = before ? -1 : 1;
        if (before && after)
            order = slice_compare(key_of(before), key_of(after));
        const vigil_kv *b = order <= 0 ? before : NULL, *a = order >= 0 ? after : NULL;
        if (!a)
            report(d, key_of(b), b, NULL);
        else if (!b || a->mod_revision != b->mod_revision)
            report(d, key_of(a), b, a);
        if (order <= 0)
            before = pager_next(old);
        if (order >= 0)
            after = pager_next(now);
        note_failure(d, old, now);
    }
    flush_batch(d);
}

/* -- The command -- */

/* The newest revision, so that the end of the comparison does not move. */
static int read_newest(struct differ *d, int64_t *ret_revision)
{
    vigil_range_request request;
    vigil_range_request_init(&request);
    request.key = vigil_text(*d->ctl->words[0] ? d->ctl->words[0] : "\001");
    request.count_only = 1;
    vigil_call *call = vigil_range(d->client, &request);
    int exit = CTL_OK;
    if (vigil_call_run(call) == VIGIL_OK)
        *ret_revision = vigil_call_header(call)->revision;
    else
        exit = ctl_fail_with(d->ctl, vigil_call_error(call));
    vigil_call_free(call);
    return exit;
}

static void compare(struct differ *d)
{
    struct slice prefix = slice_from_text(d->ctl->words[0]);
    struct pager_options from = {.prefix = prefix, .revision = d->from, .keys_only = true};
    struct pager_options to = {.prefix = prefix, .revision = d->to, .keys_only = true};
    AUTO(pager_fini) struct pager old;
    AUTO(pager_fini) struct pager now;
    pager_init(&old, d->ctl, d->client, &from);
    pager_init(&now, d->ctl, d->client, &to);
    merge(d, &old, &now);
    buf_fini(&d->keys);
}

int explore_diff(struct ctl *ctl)
{
    const struct diff_flags *flags = ctl->flags;
    struct differ d = {
        .ctl = ctl, .flags = flags, .from = flags->from, .to = flags->to, .batch_max = BATCH_MAX};
    if (flags->from <= 0)
        return ctl_refuse(ctl, "diff needs --from, the revision to begin with");
    value_view_init(&d.view, ctl, 4);
    d.view.lines_max = (uint64_t)flags->lines;
    d.json = ctl->globals.format == CTL_JSON || ctl->globals.format == CTL_JSONL;
    d.client = explore_client(ctl, &d.exit);
    if (!d.client)
        return explore_failure(d.exit);
    d.exit = CTL_OK;
    if (d.to <= 0)
        d.exit = read_newest(&d, &d.to);
    if (d.exit == CTL_OK)
        compare(&d);
    if (d.exit != CTL_OK)
        return explore_failure(d.exit);
    return d.differences > 0 ? EXPLORE_NOT_FOUND : EXPLORE_FOUND;
}
