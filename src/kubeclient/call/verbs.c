/* The requests of vigil/kube/call.h, except for vigil_kube_list_each. */
#include "client/driver/bytes.h"
#include "codec/json/writer.h"
#include "kubeclient/call/call.h"
#include "kubeclient/call/list_query.h"
#include "kubeclient/data/list_reader.h"
#include "kubeclient/data/url.h"

#include <stdlib.h>

static enum status needs_name(const vigil_kube_target *target, struct error *error)
{
    return text_is_given(target->name)
               ? ST_OK
               : error_set(error, ST_INVALID, "the request needs the name of an object");
}

static enum status needs_no_name(const vigil_kube_target *target, struct error *error)
{
    return text_is_given(target->name)
               ? error_set(error, ST_INVALID,
                           "the request is about a collection, but has the name of an object")
               : ST_OK;
}

/* -- Reading -- */

vigil_kube_call *vigil_kube_get(vigil_kube *kube, const vigil_kube_target *target)
{
    struct vigil_kube_call *call = kube_call_create(kube, "GET", sizeof(struct vigil_kube_call));
    struct error error = {0};
    if (!call)
        return NULL;
    enum status status = needs_name(target, &error);
    if (status == ST_OK)
        status = url_append_target(&call->target, target, &error);
    return kube_call_finish(call, status, &error);
}

/* Everything that the list says about itself, which also proves that it is one. */
static enum status take_list(struct vigil_kube_call *call, struct error *error)
{
    struct list_reader reader;
    struct slice body = buf_slice(&call->received), item;
    list_reader_init(&reader, call->is_protobuf ? FRAMER_PROTOBUF : FRAMER_JSON);
    list_reader_feed(&reader, body);
    enum status status;
    while ((status = list_reader_next(&reader, &item, error)) == ST_OK)
        continue;
    if (status == ST_AGAIN)
        status = list_reader_end(&reader, error);
    struct list_info info = list_reader_info(&reader);
    if (status == ST_OK)
        status = kube_call_copy_text(&call->version, info.version);
    if (status == ST_OK)
        status = kube_call_copy_text(&call->next, info.continue_token);
    list_reader_fini(&reader);
    return status;
}

static enum status set_list(struct vigil_kube_call *call, const vigil_kube_target *target,
                            const vigil_kube_list_options *options, struct error *error)
{
    vigil_kube_list_options complete;
    TRY(list_options_read(options, &complete, error));
    TRY(needs_no_name(target, error));
    TRY(url_append_target(&call->target, target, error));
    return list_query_append(&call->target, &complete);
}

vigil_kube_call *vigil_kube_list(vigil_kube *kube, const vigil_kube_target *target,
                                 const vigil_kube_list_options *options)
{
    static const struct kube_call_ops ops = {.end = take_list};
    struct vigil_kube_call *call = kube_call_create(kube, "GET", sizeof(struct vigil_kube_call));
    struct error error = {0};
    if (!call)
        return NULL;
    call->ops = &ops;
    return kube_call_finish(call, set_list(call, target, options, &error), &error);
}

/* -- Writing -- */

static enum status append_flag(struct buf *to, size_t *count, const char *name, const char *value)
{
    return text_is_given(value) ? url_append_parameter(to, count, name, slice_from_text(value))
                                : ST_OK;
}

static enum status set_write(struct vigil_kube_call *call, const vigil_kube_target *target,
                             vigil_bytes body, const vigil_kube_write_options *options,
                             struct error *error)
{
    vigil_kube_write_options complete = {.size = sizeof(complete)};
    if (options && (options->size == 0 || options->size > sizeof(complete)))
        return error_set(error, ST_INVALID, "the size of the write options is not set");
    /* A program that was compiled with an older header has a shorter struct. */
    if (options)
        memcpy(&complete, options, options->size);
    TRY(url_append_target(&call->target, target, error));
    size_t count = 0;
    TRY(append_flag(&call->target, &count, "dryRun", complete.dry_run ? "All" : NULL));
    TRY(append_flag(&call->target, &count, "fieldManager", complete.field_manager));
    TRY(append_flag(&call->target, &count, "fieldValidation", complete.field_validation));
    TRY(append_flag(&call->target, &count, "force", complete.force ? "true" : NULL));
    if (body.size == 0)
        return error_set(error, ST_INVALID, "there is no object to send");
    return buf_append(&call->body, slice_of(body.data, body.size));
}

vigil_kube_call *vigil_kube_create(vigil_kube *kube, const vigil_kube_target *target,
                                   vigil_bytes object, const vigil_kube_write_options *options)
{
    struct vigil_kube_call *call = kube_call_create(kube, "POST", sizeof(struct vigil_kube_call));
    struct error error = {0};
    if (!call)
        return NULL;
    /* Only a subresource, such as an eviction, is created under the name of an object. */
    enum status status = text_is_given(target->subresource) ? ST_OK : needs_no_name(target, &error);
    if (status == ST_OK)
        status = set_write(call, target, object, options, &error);
    return kube_call_finish(call, status, &error);
}

vigil_kube_call *vigil_kube_update(vigil_kube *kube, const vigil_kube_target *target,
                                   vigil_bytes object, const vigil_kube_write_options *options)
{
    struct vigil_kube_call *call = kube_call_create(kube, "PUT", sizeof(struct vigil_kube_call));
    struct error error = {0};
    if (!call)
        return NULL;
    enum status status = needs_name(target, &error);
    if (status == ST_OK)
        status = set_write(call, target, object, options, &error);
    return kube_call_finish(call, status, &error);
}

static enum status set_patch(struct vigil_kube_call *call, const vigil_kube_target *target,
                             int patch_type, vigil_bytes patch,
                             const vigil_kube_write_options *options, struct error *error)
{
    static const char *const types[] = {
        [VIGIL_KUBE_PATCH_JSON] = "application/json-patch+json",
        [VIGIL_KUBE_PATCH_MERGE] = "application/merge-patch+json",
        [VIGIL_KUBE_PATCH_STRATEGIC] = "application/strategic-merge-patch+json",
        [VIGIL_KUBE_PATCH_APPLY] = "application/apply-patch+yaml",
    };
    if (patch_type < 0 || patch_type >= (int)COUNT_OF(types))
        return error_set(error, ST_INVALID, "there is no patch type %d", patch_type);
    call->content_type = types[patch_type];
    TRY(needs_name(target, error));
    return set_write(call, target, patch, options, error);
}

vigil_kube_call *vigil_kube_patch(vigil_kube *kube, const vigil_kube_target *target, int patch_type,
                                  vigil_bytes patch, const vigil_kube_write_options *options)
{
    struct vigil_kube_call *call = kube_call_create(kube, "PATCH", sizeof(struct vigil_kube_call));
    struct error error = {0};
    if (!call)
        return NULL;
    return kube_call_finish(call, set_patch(call, target, patch_type, patch, options, &error),
                            &error);
}

vigil_kube_call *vigil_kube_apply(vigil_kube *kube, const vigil_kube_target *target,
                                  vigil_bytes object, const char *field_manager, int force)
{
    vigil_kube_write_options options = {
        .size = sizeof(options), .field_manager = field_manager, .force = force};
    struct vigil_kube_call *call =
        vigil_kube_patch(kube, target, VIGIL_KUBE_PATCH_APPLY, object, &options);
    struct error error;
    if (!call || text_is_given(field_manager))
        return call;
    return kube_call_finish(
        call, error_set(&error, ST_INVALID, "apply needs the name of a field manager"), &error);
}

/* -- Deleting -- */

static void write_preconditions(struct json_writer *w, const vigil_kube_delete_options *o)
{
    if (!text_is_given(o->uid) && !text_is_given(o->version))
        return;
    json_member_object(w, "preconditions");
    if (text_is_given(o->uid)) {
        json_member_text(w, "uid", o->uid);
    }
    if (text_is_given(o->version)) {
        json_member_text(w, "resourceVersion", o->version);
    }
    json_end_object(w);
}

static enum status write_delete_options(struct buf *to, const vigil_kube_delete_options *o)
{
    struct json_writer w;
    struct slice all = SLICE_LITERAL("All");
    json_writer_init(&w, to);
    json_begin_object(&w);
    json_member_text(&w, "kind", "DeleteOptions");
    json_member_text(&w, "apiVersion", "v1");
    if (o->grace_period_s) {
        json_member_i64(&w, "gracePeriodSeconds", *o->grace_period_s);
    }
    write_preconditions(&w, o);
    if (text_is_given(o->propagation)) {
        json_member_text(&w, "propagationPolicy", o->propagation);
    }
    if (o->dry_run) {
        json_key(&w, "dryRun");
        json_strings(&w, &all, 1);
    }
    json_end_object(&w);
    return json_writer_finish(&w);
}

/* Without options there is no body. */
static enum status set_delete_options(struct vigil_kube_call *call,
                                      const vigil_kube_delete_options *options, struct error *error)
{
    vigil_kube_delete_options complete = {.size = sizeof(complete)};
    if (!options)
        return ST_OK;
    if (options->size == 0 || options->size > sizeof(*options))
        return error_set(error, ST_INVALID, "the size of the delete options is not set");
    /* A program that was compiled with an older header has a shorter struct. */
    memcpy(&complete, options, options->size);
    return write_delete_options(&call->body, &complete);
}

vigil_kube_call *vigil_kube_delete(vigil_kube *kube, const vigil_kube_target *target,
                                   const vigil_kube_delete_options *options)
{
    struct vigil_kube_call *call = kube_call_create(kube, "DELETE", sizeof(struct vigil_kube_call));
    struct error error = {0};
    if (!call)
        return NULL;
    enum status status = needs_name(target, &error);
    if (status == ST_OK)
        status = url_append_target(&call->target, target, &error);
    if (status == ST_OK)
        status = set_delete_options(call, options, &error);
    return kube_call_finish(call, status, &error);
}

vigil_kube_call *vigil_kube_delete_collection(vigil_kube *kube, const vigil_kube_target *target,
                                              const vigil_kube_delete_options *options,
                                              const vigil_kube_list_options *selected)
{
    struct vigil_kube_call *call = kube_call_create(kube, "DELETE", sizeof(struct vigil_kube_call));
    struct error error = {0};
    if (!call)
        return NULL;
    enum status status = set_list(call, target, selected, &error);
    if (status == ST_OK)
        status = set_delete_options(call, options, &error);
    return kube_call_finish(call, status, &error);
}

/* -- Any other request -- */

static enum status set_request(struct vigil_kube_call *call, const char *method, const char *path,
                               const char *content_type, vigil_bytes body, struct error *error)
{
    if (!text_is_given(method) || !path || *path != '/')
        return error_set(error, ST_INVALID,
                         "a request needs a method, and a path that begins with \"/\"");
    if (!text_is_given(content_type))
        content_type = "application/json";
    /* The texts of the program need not remain until the call is started. */
    size_t method_bytes = strlen(method) + 1, type_bytes = strlen(content_type) + 1;
    call->texts = malloc(method_bytes + type_bytes);
    if (!call->texts)
        return ST_NOMEM;
    call->method = memcpy(call->texts, method, method_bytes);
    call->content_type = memcpy(call->texts + method_bytes, content_type, type_bytes);
    TRY(buf_append_text(&call->target, path));
    return buf_append(&call->body, slice_of(body.data, body.size));
}

vigil_kube_call *vigil_kube_request(vigil_kube *kube, const char *method, const char *path,
                                    const char *content_type, vigil_bytes body)
{
    struct vigil_kube_call *call = kube_call_create(kube, "GET", sizeof(struct vigil_kube_call));
    struct error error = {0};
    if (!call)
        return NULL;
    return kube_call_finish(call, set_request(call, method, path, content_type, body, &error),
                            &error);
}
