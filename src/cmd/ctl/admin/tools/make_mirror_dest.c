#include "cmd/ctl/admin/tools/make_mirror_dest.h"

#include "base/clock.h"

#include <stdlib.h>

enum { RETRY_MS = 500 };

/* -- Opening -- */

static int set_user(struct mirror_dest *dest, const struct mirror_flags *flags)
{
    struct ctl_globals *globals = &dest->ctl.globals;
    globals->user = flags->user;
    globals->password = flags->password;
    globals->token = "";
    /* There is no user, or the password is known. */
    if (!*flags->user || *flags->password || strchr(flags->user, ':'))
        return CTL_OK;
    globals->password = ctl_ask_hidden(&dest->ctl, "Destination Password: ");
    return globals->password ? CTL_OK : CTL_ERROR;
}

int mirror_dest_open(struct mirror_dest *dest, struct ctl *ctl)
{
    const struct mirror_flags *flags = ctl->flags;
    *dest = (struct mirror_dest){.ctl = *ctl, .bytes_max = SIZE_MAX};
    dest->op_max = flags->max_txn_ops > 0 ? (size_t)flags->max_txn_ops : SIZE_MAX;
    if (flags->no_dest_prefix && *flags->dest_prefix)
        return ctl_refuse(ctl, "`--dest-prefix` and `--no-dest-prefix` cannot be set at the same "
                               "time, choose one");
    struct ctl_globals *globals = &dest->ctl.globals;
    globals->endpoints = ctl->words[0];
    globals->discovery_srv = "";
    globals->cert_file = flags->cert_file;
    globals->key_file = flags->key_file;
    globals->ca_file = flags->ca_file;
    globals->insecure_transport = flags->insecure_transport;
    globals->insecure_skip_verify = false;
    dest->ctl.client = NULL;
    bool keeps = !*flags->dest_prefix && !flags->no_dest_prefix;
    dest->from = slice_from_text(flags->prefix);
    dest->to = keeps ? dest->from : slice_from_text(flags->dest_prefix);
    int code = set_user(dest, flags);
    if (code == CTL_OK)
        dest->client = ctl_client(&dest->ctl, &code);
    return code;
}

void mirror_dest_close(struct mirror_dest *dest)
{
    vigil_txn_free(dest->txn);
    vigil_client_free(dest->client);
}

/* -- Writing -- */

/* False: a signal has arrived. */
static bool pause_before_retry(const struct mirror_dest *dest)
{
    int64_t until_ns = clock_mono_ns(clock_system()) + RETRY_MS * NS_PER_MS;
    while (clock_mono_ns(clock_system()) < until_ns) {
        if (!ctl_wait(dest->client, RETRY_MS))
            return false;
    }
    return true;
}

static int commit(struct mirror_dest *dest)
{
    bool told = false;
    for (;;) {
        vigil_call *call = vigil_txn_call(dest->txn);
        int code = vigil_call_run(call);
        vigil_error error = *vigil_call_error(call);
        vigil_call_free(call);
        if (code == VIGIL_OK)
            return CTL_OK;
        /* Trying again can help only if no server has answered. */
        if (ctl_is_etcdctl(&dest->ctl) ||
            (error.code != VIGIL_ERROR_UNAVAILABLE && error.code != VIGIL_ERROR_TIMEOUT))
            return ctl_fail_with(&dest->ctl, &error);
        if (!told)
            fprintf(stderr, "The destination does not answer (%s); trying again.\n", error.text);
        told = true;
        if (!pause_before_retry(dest))
            return CTL_INTERRUPTED;
    }
}

int mirror_dest_flush(struct mirror_dest *dest)
{
    if (!dest->op_count)
        return CTL_OK;
    int code = commit(dest);
    vigil_txn_free(dest->txn);
    dest->txn = NULL;
    if (code == CTL_OK)
        dest->total += dest->op_count;
    dest->op_count = 0;
    dest->bytes = 0;
    return code;
}

static int make_room(struct mirror_dest *dest, size_t bytes)
{
    bool is_full =
        dest->op_count >= dest->op_max || (dest->op_count && dest->bytes + bytes > dest->bytes_max);
    int code = is_full ? mirror_dest_flush(dest) : CTL_OK;
    if (code == CTL_OK && !dest->txn)
        dest->txn = vigil_txn_new(dest->client);
    dest->op_count++;
    dest->bytes += bytes;
    return code;
}

/* The key at the destination, in memory that the caller frees; NULL without memory. */
static char *renamed(const struct mirror_dest *dest, vigil_bytes key, vigil_bytes *ret_key)
{
    struct slice rest = slice_of(key.data, key.size);
    if (slice_has_prefix(rest, dest->from))
        rest = slice_sub(rest, dest->from.len, rest.len - dest->from.len);
    char *text = malloc(dest->to.len + rest.len + 1);
    if (!text)
        return NULL;
    slice_copy(text, dest->to);
    slice_copy(text + dest->to.len, rest);
    *ret_key = vigil_bytes_of(text, dest->to.len + rest.len);
    return text;
}

int mirror_dest_put(struct mirror_dest *dest, vigil_bytes key, vigil_bytes value)
{
    int code = make_room(dest, key.size + value.size);
    vigil_bytes name;
    char *text = code == CTL_OK ? renamed(dest, key, &name) : NULL;
    if (code == CTL_OK && !text)
        return ctl_fail(&dest->ctl, CTL_ERROR, "out of memory");
    if (code == CTL_OK)
        vigil_txn_put(dest->txn, name, value, 0);
    free(text);
    return code;
}

int mirror_dest_delete(struct mirror_dest *dest, vigil_bytes key)
{
    int code = make_room(dest, key.size);
    vigil_bytes name;
    char *text = code == CTL_OK ? renamed(dest, key, &name) : NULL;
    if (code == CTL_OK && !text)
        return ctl_fail(&dest->ctl, CTL_ERROR, "out of memory");
    if (code == CTL_OK)
        vigil_txn_delete(dest->txn, name);
    free(text);
    return code;
}
