#include "kubeclient/call/list_query.h"

#include "client/driver/bytes.h"
#include "kubeclient/data/url.h"

#include <inttypes.h>
#include <stdio.h>

enum status list_options_read(const vigil_kube_list_options *options,
                              vigil_kube_list_options *ret_options, struct error *error)
{
    *ret_options = (vigil_kube_list_options){.size = sizeof(*ret_options)};
    if (!options)
        return ST_OK;
    if (options->size == 0 || options->size > sizeof(*options))
        return error_set(error, ST_INVALID, "the size of the list options is not set");
    memcpy(ret_options, options, options->size);
    if (options->limit < 0)
        return error_set(error, ST_INVALID, "the limit of a list is negative");
    return ST_OK;
}

static enum status append_text(struct buf *to, size_t *count, const char *name, const char *value)
{
    return text_is_given(value) ? url_append_parameter(to, count, name, slice_from_text(value))
                                : ST_OK;
}

enum status list_query_append(struct buf *to, const vigil_kube_list_options *o)
{
    size_t count = 0;
    char limit[24];
    bool continues = text_is_given(o->continue_token);
    snprintf(limit, sizeof(limit), "%" PRId64, o->limit);
    TRY(append_text(to, &count, "continue", o->continue_token));
    TRY(append_text(to, &count, "fieldSelector", o->field_selector));
    TRY(append_text(to, &count, "labelSelector", o->label_selector));
    TRY(append_text(to, &count, "limit", o->limit ? limit : NULL));
    TRY(append_text(to, &count, "resourceVersion", continues ? NULL : o->version));
    return append_text(to, &count, "resourceVersionMatch", continues ? NULL : o->version_match);
}
