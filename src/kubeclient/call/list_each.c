/* vigil_kube_list_each: a collection, page by page and object by object. */
#include "kubeclient/call/call.h"
#include "kubeclient/call/list_query.h"
#include "kubeclient/data/list_reader.h"
#include "kubeclient/data/object.h"
#include "kubeclient/data/url.h"

#include <stdlib.h>
#include <vigil/kube/json.h>

enum { PAGE_LIMIT = 500 }; /* as in client-go */

struct list_each_call {
    struct vigil_kube_call call;
    vigil_kube_item item;
    void *user;
    vigil_kube_list_options options; /* its texts are owned */
    struct buf path;                 /* without a query */
    struct buf token; /* token of the page that is being read; with a final zero or empty */
    bool renewed;     /* the token is one that the server offered after 410 */
    struct list_reader reader;
    bool reading; /* the reader is in use */
};

static void release(struct vigil_kube_call *call)
{
    struct list_each_call *each = CONTAINER_OF(call, struct list_each_call, call);
    const char **texts[] = {&each->options.label_selector, &each->options.field_selector,
                            &each->options.version, &each->options.version_match};
    if (each->reading)
        list_reader_fini(&each->reader);
    each->reading = false;
    buf_fini(&each->path);
    buf_fini(&each->token);
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        free((void *)*texts[i]);
        *texts[i] = NULL;
    }
}

/* -- Requests -- */

static enum status set_page(struct list_each_call *each)
{
    AUTO(buf_fini) struct buf target = {0};
    vigil_kube_list_options options = each->options;
    options.continue_token = each->token.len ? (const char *)each->token.ptr : NULL;
    TRY(buf_append(&target, buf_slice(&each->path)));
    TRY(list_query_append(&target, &options));
    return kube_call_set_target(&each->call, buf_slice(&target));
}

/* The state of the first page was compacted. The server offers a token with which the rest can be
 * read as of now; one that is refused again is not replaced. */
static bool on_refused(struct vigil_kube_call *call, const struct exchange_result *result)
{
    struct list_each_call *each = CONTAINER_OF(call, struct list_each_call, call);
    vigil_bytes body = vigil_bytes_of(result->body.ptr, result->body.len), value;
    AUTO(buf_fini) struct buf token = {0};
    size_t len;
    if (result->http_code != 410 || !each->token.len || each->renewed ||
        !vigil_json_find(body, "metadata.continue", &value) || value.size <= 2 ||
        buf_reserve(&token, value.size) != ST_OK ||
        !vigil_json_text(value, (char *)token.ptr, value.size, &len) ||
        kube_call_copy_text(&each->token, slice_of(token.ptr, len)) != ST_OK ||
        set_page(each) != ST_OK)
        return false;
    each->renewed = true;
    return true;
}

/* -- Answers -- */

static void begin(struct vigil_kube_call *call)
{
    struct list_each_call *each = CONTAINER_OF(call, struct list_each_call, call);
    if (each->reading)
        list_reader_fini(&each->reader);
    each->reading = false;
}

/* The program may free the call inside, but the loop's reference keeps it. */
static enum status deliver(struct list_each_call *each, struct slice item, struct error *error)
{
    struct driver *driver = &each->call.kube->driver;
    struct vigil_kube_object *object;
    enum status status = object_new(item, &object);
    if (status == ST_MALFORMED)
        return error_set(error, ST_MALFORMED, "the list has an item without a name");
    if (status != ST_OK)
        return status;
    if (kube_call_is_wanted(&each->call) &&
        driver_callback_begin(driver, &each->call.operation.object)) {
        each->item(&each->call, object, each->user);
        driver_callback_end(driver);
    }
    vigil_kube_object_unref(object);
    return ST_OK;
}

static enum status receive(struct vigil_kube_call *call, struct slice bytes, struct error *error)
{
    struct list_each_call *each = CONTAINER_OF(call, struct list_each_call, call);
    struct slice item;
    enum status status;
    if (!each->reading)
        list_reader_init(&each->reader, call->is_protobuf ? FRAMER_PROTOBUF : FRAMER_JSON);
    each->reading = true;
    list_reader_feed(&each->reader, bytes);
    while ((status = list_reader_next(&each->reader, &item, error)) == ST_OK)
        TRY(deliver(each, item, error));
    return status == ST_AGAIN ? ST_OK : status;
}

static enum status end(struct vigil_kube_call *call, struct error *error)
{
    struct list_each_call *each = CONTAINER_OF(call, struct list_each_call, call);
    if (!each->reading)
        return error_set(error, ST_MALFORMED, "the server's answer is empty");
    TRY(list_reader_end(&each->reader, error));
    struct list_info info = list_reader_info(&each->reader);
    TRY(kube_call_copy_text(&call->version, info.version));
    /* A server that repeats a token would never end. */
    struct slice last = slice_of(each->token.ptr, each->token.len ? each->token.len - 1 : 0);
    if (info.continue_token.len == 0)
        return ST_OK;
    if (slice_equal(info.continue_token, last))
        return error_set(error, ST_MALFORMED,
                         "the server has answered with the same continue token twice");
    TRY(kube_call_copy_text(&each->token, info.continue_token));
    TRY(set_page(each));
    each->renewed = false;
    return ST_OK;
}

/* -- Creation -- */

static enum status copy_option(const char **text)
{
    if (!*text)
        return ST_OK;
    *text = strdup(*text);
    return *text ? ST_OK : ST_NOMEM;
}

static enum status set_up(struct list_each_call *each, const vigil_kube_target *target,
                          const vigil_kube_list_options *options, struct error *error)
{
    vigil_kube_list_options complete;
    TRY(list_options_read(options, &complete, error));
    if (target->name && *target->name)
        return error_set(error, ST_INVALID,
                         "the request is about a collection, but has the name of an object");
    each->options = (vigil_kube_list_options){
        .size = sizeof(each->options), .limit = complete.limit ? complete.limit : PAGE_LIMIT};
    if (complete.continue_token && *complete.continue_token)
        TRY(kube_call_copy_text(&each->token, slice_from_text(complete.continue_token)));
    each->options.label_selector = complete.label_selector;
    TRY(copy_option(&each->options.label_selector));
    each->options.field_selector = complete.field_selector;
    TRY(copy_option(&each->options.field_selector));
    each->options.version = complete.version;
    TRY(copy_option(&each->options.version));
    each->options.version_match = complete.version_match;
    TRY(copy_option(&each->options.version_match));
    TRY(url_append_target(&each->path, target, error));
    return set_page(each);
}

vigil_kube_call *vigil_kube_list_each(vigil_kube *kube, const vigil_kube_target *target,
                                      const vigil_kube_list_options *options, vigil_kube_item item,
                                      void *user)
{
    static const struct kube_call_ops ops = {
        .begin = begin, .receive = receive, .end = end, .refused = on_refused, .release = release};
    struct vigil_kube_call *call = kube_call_create(kube, "GET", sizeof(struct list_each_call));
    struct error error = {0};
    if (!call)
        return NULL;
    struct list_each_call *each = CONTAINER_OF(call, struct list_each_call, call);
    call->ops = &ops;
    each->item = item;
    each->user = user;
    return kube_call_finish(call, set_up(each, target, options, &error), &error);
}
