#include "kubeclient/watch/watch_query.h"

#include "client/driver/bytes.h"
#include "kubeclient/data/url.h"
#include "wire/http/field.h"

#include <inttypes.h>
#include <stdio.h>

/* -- The request -- */

/* An object is watched by a field selector on its collection: a path with its name reads it. */
static enum status append_field_selector(struct buf *to, size_t *count,
                                         const struct watch_params *params)
{
    const char *name = params->target->name;
    AUTO(buf_fini) struct buf selector = {0};
    if (text_is_given(name))
        TRY(buf_append_format(&selector, "metadata.name=%s", name));
    if (text_is_given(params->field_selector))
        TRY(buf_append_format(&selector, "%s%s", selector.len ? "," : "", params->field_selector));
    return selector.len ? url_append_parameter(to, count, "fieldSelector", buf_slice(&selector))
                        : ST_OK;
}

static enum status append_text(struct buf *to, size_t *count, const char *name, const char *value)
{
    return text_is_given(value) ? url_append_parameter(to, count, name, slice_from_text(value))
                                : ST_OK;
}

static enum status append_parameters(struct buf *to, const struct watch_params *params)
{
    size_t count = 0;
    TRY(append_text(to, &count, "allowWatchBookmarks", params->bookmarks ? "true" : NULL));
    TRY(append_field_selector(to, &count, params));
    TRY(append_text(to, &count, "labelSelector", params->label_selector));
    TRY(append_text(to, &count, "resourceVersion", params->version));
    if (params->initial_events) {
        TRY(append_text(to, &count, "resourceVersionMatch", "NotOlderThan"));
        TRY(append_text(to, &count, "sendInitialEvents", "true"));
    }
    char timeout[24];
    snprintf(timeout, sizeof(timeout), "%" PRId64, params->timeout_s);
    TRY(append_text(to, &count, "timeoutSeconds", params->timeout_s ? timeout : NULL));
    return append_text(to, &count, "watch", "true");
}

static bool is_name(const char *name)
{
    return !text_is_given(name) || !strpbrk(name, ",=!\\/%");
}

enum status watch_query_append(struct buf *to, const struct watch_params *params,
                               struct error *error)
{
    struct vigil_kube_target collection = *params->target;
    if (text_is_given(collection.subresource))
        return error_set(error, ST_INVALID, "a subresource cannot be watched");
    if (!is_name(collection.name))
        return error_set(error, ST_INVALID, "\"%.80s\" cannot be the name of an object",
                         collection.name);
    collection.name = NULL;
    TRY(url_append_target(to, &collection, error));
    return append_parameters(to, params) == ST_OK ? ST_OK : error_no_memory(error);
}

const char *watch_query_accept(bool protobuf)
{
    return protobuf ? "application/vnd.kubernetes.protobuf,application/json" : "application/json";
}

/* -- The answer -- */

static struct slice unquote(struct slice value)
{
    if (value.len >= 2 && value.ptr[0] == '"' && value.ptr[value.len - 1] == '"')
        return slice_sub(value, 1, value.len - 2);
    return value;
}

/* A stream of something else than a watch's events. */
static bool is_other_stream(struct slice parameters)
{
    while (parameters.len) {
        struct slice value = slice_trim(slice_cut(&parameters, ';'));
        struct slice name = slice_trim(slice_cut(&value, '='));
        if (http_name_equal(name, SLICE_LITERAL("stream")) &&
            !slice_equal(unquote(slice_trim(value)), SLICE_LITERAL("watch")))
            return true;
    }
    return false;
}

enum status watch_format_read(struct slice content_type, enum framer_format *ret_format,
                              struct error *error)
{
    struct slice parameters = content_type, shown = content_type;
    struct slice type = slice_trim(slice_cut(&parameters, ';'));
    shown.len = size_min(shown.len, 100);
    if (is_other_stream(parameters))
        return error_set(error, ST_INVALID, "the server answered a watch with \"%.*s\"",
                         SLICE_ARGS(shown));
    if (!type.len || http_name_equal(type, SLICE_LITERAL("application/json")))
        *ret_format = FRAMER_JSON;
    else if (http_name_equal(type, SLICE_LITERAL("application/vnd.kubernetes.protobuf")))
        *ret_format = FRAMER_PROTOBUF;
    else
        return error_set(error, ST_INVALID,
                         "the server answered a watch with the unknown media type \"%.*s\"",
                         SLICE_ARGS(shown));
    return ST_OK;
}
