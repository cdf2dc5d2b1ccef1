#include "client/connect/error.h"
#include "embed/handle.h"

#define QUOTA_DEFAULT_BYTES (INT64_C(2) << 30)
#define CHECKPOINT_DEFAULT_BYTES ((size_t)64 << 20)
#define REQUEST_BYTES_LIMIT ((size_t)1 << 30)
#define WATCH_PROGRESS_DEFAULT_MS (600 * 1000)
#define WATCH_PROGRESS_MS_MIN 100
#define HISTORY_MS_MAX (INT64_C(1000) * 3600 * 24 * 3650) /* ten years */

void vigil_embedded_options_init(vigil_embedded_options *options)
{
    *options = (vigil_embedded_options){
        .size = sizeof(*options),
        .quota_bytes = QUOTA_DEFAULT_BYTES,
        .checkpoint_bytes = CHECKPOINT_DEFAULT_BYTES,
        .request_bytes_max = ETCD_REQUEST_BYTES_MAX_DEFAULT,
        .watch_progress_ms = WATCH_PROGRESS_DEFAULT_MS,
    };
}

static int refuse(vigil_error *error, enum vigil_code code, const char *text)
{
    if (error)
        client_error_set(error, code, VIGIL_NOT_SENT, "%s", text);
    return (int)code;
}

/* Why these options cannot be used; NULL if they can. */
static const char *fault_of(const vigil_embedded_options *o)
{
    if (o->client && (o->client->size == 0 || o->client->size > sizeof(*o->client)))
        return "the options of the client were not set up with vigil_options_init";
    if (o->quota_bytes < 0 || o->keep_history_ms < 0 || o->keep_history_revisions < 0 ||
        o->keep_history_ms > HISTORY_MS_MAX || o->watch_progress_ms < WATCH_PROGRESS_MS_MIN ||
        o->watch_progress_ms > HISTORY_MS_MAX)
        return "a size, time or number is negative, too small or too large";
    if (o->keep_history_ms && o->keep_history_revisions)
        return "keep_history_ms and keep_history_revisions are both set";
    if (o->checkpoint_bytes == 0 || o->request_bytes_max == 0 ||
        o->request_bytes_max > REQUEST_BYTES_LIMIT)
        return "checkpoint_bytes and request_bytes_max must be at least 1, and request_bytes_max "
               "at "
               "most 1 GiB";
    return NULL;
}

static enum vigil_code code_of(enum status status)
{
    switch (status) {
    case ST_NOMEM:
        return VIGIL_ERROR_MEMORY;
    case ST_CANCELED: /* embed/stores.h */
        return VIGIL_ERROR_WOULD_BLOCK;
    default:
        return VIGIL_ERROR_SYSTEM;
    }
}

int vigil_open_embedded(const char *directory, const vigil_embedded_options *options,
                        vigil_client **ret_client, vigil_error *error)
{
    vigil_embedded_options complete;
    struct embed_store *store;
    struct error why = {0};
    vigil_embedded_options_init(&complete);
    if (!directory || !*directory)
        return refuse(error, VIGIL_ERROR_ARGUMENT, "no directory was given");
    if (options && (options->size == 0 || options->size > sizeof(complete)))
        return refuse(error, VIGIL_ERROR_ARGUMENT,
                      "the options were not set up with vigil_embedded_options_init");
    if (options)
        memcpy(&complete, options, options->size);
    const char *fault = fault_of(&complete);
    if (fault)
        return refuse(error, VIGIL_ERROR_ARGUMENT, fault);
    enum status status = embed_stores_enter(directory, &complete, &store, &why);
    if (status != ST_OK)
        return refuse(error, code_of(status), why.text[0] ? why.text : status_reason(status));
    return embed_handle_open(store, complete.client, ret_client, error);
}

int vigil_embedded_listen(vigil_client *client, const char *client_urls, const char *kube_urls,
                          char *urls, size_t size, vigil_error *error)
{
    struct error why = {0};
    struct embed_store *store = embed_handle_store(client);
    if (!store)
        return refuse(error, VIGIL_ERROR_ARGUMENT, "the client is not one of an embedded store");
    if (driver_is_inherited(&client->driver))
        return refuse(error, VIGIL_ERROR_SYSTEM,
                      "the client belongs to the process from which this one was forked");
    if (driver_must_not_wait(&client->driver))
        return refuse(error, VIGIL_ERROR_WOULD_BLOCK, "not inside a callback");
    enum status status = embed_store_listen(store, client_urls, kube_urls, urls, size, &why);
    if (status == ST_OK)
        return VIGIL_OK;
    bool wrong = status == ST_INVALID || status == ST_EXISTS;
    return refuse(error, wrong ? VIGIL_ERROR_ARGUMENT : code_of(status),
                  why.text[0] ? why.text : status_reason(status));
}
