/* vigil restore-key: writes an older version of a key again. */
#include "cmd/ctl/explore/explore.h"
#include "cmd/ctl/explore/kv_view.h"
#include "cmd/ctl/explore/pager.h"
#include "cmd/ctl/explore/value_view.h"

#include <inttypes.h>

/*
 * The old and the current version are read, and the old value is written on the condition that the
 * key still has the current mod_revision. A change in between is not overwritten.
 */
struct restore {
    struct ctl *ctl;
    const struct restore_flags *flags;
    vigil_client *client;
    vigil_bytes key;
    vigil_call *old_call, *now_call;
    const vigil_kv *old, *now; /* now: NULL if the key does not exist */
};

static void restore_fini(struct restore *r)
{
    vigil_call_free(r->old_call);
    vigil_call_free(r->now_call);
}

static int read_at(struct restore *r, int64_t revision, vigil_call **ret_call,
                   const vigil_kv **ret_kv)
{
    vigil_range_request request;
    vigil_range_request_init(&request);
    request.key = r->key;
    request.revision = revision;
    *ret_call = vigil_range(r->client, &request);
    if (vigil_call_run(*ret_call) != VIGIL_OK)
        return ctl_fail_with(r->ctl, vigil_call_error(*ret_call));
    const vigil_range_response *range = vigil_range_result(*ret_call);
    *ret_kv = range->kv_count > 0 ? &range->kvs[0] : NULL;
    return CTL_OK;
}

static struct slice value_of(const vigil_kv *kv)
{
    return slice_of(kv->value.data, kv->value.size);
}

static int64_t lease_of(const struct restore *r)
{
    if (r->flags->lease == RESTORE_LEASE_ORIGINAL)
        return r->old->lease;
    return r->flags->lease == RESTORE_LEASE_KEEP && r->now ? r->now->lease : 0;
}

/* -- Output -- */

static bool is_json(const struct restore *r)
{
    return r->ctl->globals.format == CTL_JSON || r->ctl->globals.format == CTL_JSONL;
}

/* revision: of the put; 0: nothing was written. */
static void put_json(const struct restore *r, int64_t revision)
{
    AUTO(buf_fini) struct buf line = {0};
    struct json_writer w;
    json_writer_init(&w, &line);
    json_begin_object(&w);
    decode_put_member(&w, "key", DECODE_TEXT, slice_of(r->key.data, r->key.size));
    json_member_i64(&w, "restored_revision", r->old->mod_revision);
    json_member_i64(&w, "replaced_revision", r->now ? r->now->mod_revision : 0);
    json_member_i64(&w, "lease", lease_of(r));
    json_member_bool(&w, "written", revision > 0);
    if (revision > 0) {
        json_member_i64(&w, "revision", revision);
    }
    json_end_object(&w);
    kv_view_put_line(r->ctl->out, &w);
}

static void put_plan(const struct restore *r)
{
    struct value_view view;
    value_view_init(&view, r->ctl, 0);
    fprintf(r->ctl->out, "The value of revision %" PRId64 " would %s.\n", r->old->mod_revision,
            r->now ? "replace the current one" : "create the key, which does not exist now");
    if (r->now)
        value_view_difference(&view, value_of(r->now), value_of(r->old));
    else
        value_view_put(&view, LINE_ADDED, value_of(r->old));
    if (lease_of(r))
        fprintf(r->ctl->out, "Its lease would be %" PRIx64 ".\n", (uint64_t)lease_of(r));
}

static int report(const struct restore *r, int64_t revision, const char *text)
{
    if (is_json(r))
        put_json(r, revision);
    else if (revision > 0)
        fprintf(r->ctl->out, "%s: the value of revision %" PRId64 " is revision %" PRId64 ".\n",
                text, r->old->mod_revision, revision);
    else
        fprintf(r->ctl->out, "%s\n", text);
    return CTL_OK;
}

/* -- The command -- */

static int write_back(struct restore *r)
{
    vigil_txn *txn = vigil_txn_new(r->client);
    vigil_txn_if_mod_revision(txn, r->key, VIGIL_EQUAL, r->now ? r->now->mod_revision : 0);
    vigil_txn_put(txn, r->key, r->old->value, lease_of(r));
    vigil_call *call = vigil_txn_call(txn);
    vigil_txn_free(txn);
    int exit;
    if (vigil_call_run(call) != VIGIL_OK)
        exit = ctl_fail_with(r->ctl, vigil_call_error(call));
    else if (!vigil_txn_result(call)->succeeded)
        exit = ctl_fail(r->ctl, CTL_ERROR,
                        "the key was changed meanwhile, so nothing was written; look at it and try "
                        "again");
    else
        exit = report(r, vigil_call_header(call)->revision, "Restored");
    vigil_call_free(call);
    return exit;
}

static int restore(struct restore *r)
{
    int exit = read_at(r, r->flags->revision, &r->old_call, &r->old);
    if (exit == CTL_OK && !r->old)
        return ctl_fail(r->ctl, CTL_ERROR,
                        "the key did not exist at revision %" PRId64
                        "; vigil history KEY shows its versions",
                        r->flags->revision);
    if (exit == CTL_OK)
        exit = read_at(r, 0, &r->now_call, &r->now);
    if (exit != CTL_OK)
        return exit;
    if (r->now && slice_equal(value_of(r->old), value_of(r->now)) && r->now->lease == lease_of(r))
        return report(r, 0, "The key has this value already, so nothing was written.");
    if (!r->flags->dry_run)
        return write_back(r);
    if (is_json(r))
        put_json(r, 0);
    else
        put_plan(r);
    return CTL_OK;
}

int explore_restore_key(struct ctl *ctl)
{
    int exit;
    AUTO(restore_fini)
    struct restore r = {.ctl = ctl, .flags = ctl->flags, .key = vigil_text(ctl->words[0])};
    if (r.flags->revision <= 0)
        return ctl_refuse(ctl,
                          "restore-key needs --rev, the revision whose value is written again");
    r.client = explore_client(ctl, &exit);
    return r.client ? restore(&r) : exit;
}
