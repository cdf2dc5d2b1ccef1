#include "base/buf.h"
#include "client/driver/bytes.h"
#include "codec/json/scanner.h"
#include "codec/json/writer.h"
#include "codec/utf8.h"
#include "kubeclient/data/json.h"
#include "kubeclient/data/protobuf.h"

#include <stdlib.h>
#include <vigil/kube/edit.h>

/* Gives the text to the program if everything went well. */
static int finish(enum status status, struct buf *text, vigil_bytes *ret_text)
{
    if (status != ST_OK) {
        buf_fini(text);
        return status == ST_NOMEM ? VIGIL_ERROR_MEMORY : VIGIL_ERROR_ARGUMENT;
    }
    *ret_text = vigil_bytes_of(text->ptr, text->len);
    return VIGIL_OK;
}

void vigil_json_free(vigil_bytes text)
{
    free((void *)(uintptr_t)text.data);
}

/* -- JSON -- */

/* Without white space around it. False: it is not one value. */
static bool trim(vigil_bytes *json)
{
    struct json_scanner s;
    struct slice value;
    json_scanner_init(&s, slice_of_bytes(*json));
    if (!json_next_value(&s, &value) || json_next(&s) != JSON_END)
        return false;
    *json = vigil_bytes_of(value.ptr, value.len);
    return true;
}

static bool find_item(vigil_bytes array, size_t index, vigil_bytes *ret_item)
{
    vigil_json_iterator iterator = vigil_json_iterate(array);
    do {
        if (!vigil_json_next(&iterator, NULL, ret_item))
            return false;
    } while (index-- > 0);
    return true;
}

/* Moves to the part of *value that the step names. ST_AGAIN: an object that does not have it. */
static enum status enter(vigil_bytes *value, const struct path_step *step)
{
    int type = vigil_json_type_of(*value);
    if (step->type == PATH_INDEX)
        return type == VIGIL_JSON_ARRAY && find_item(*value, step->index, value) ? ST_OK
                                                                                 : ST_INVALID;
    if (type != VIGIL_JSON_OBJECT)
        return ST_INVALID;
    vigil_bytes key = vigil_bytes_of(step->key.ptr, step->key.len);
    return vigil_json_member(*value, key, value) ? ST_OK : ST_AGAIN;
}

static enum status append_string(struct buf *to, struct slice text)
{
    struct json_writer w;
    if (!utf8_valid(text))
        return ST_INVALID;
    json_writer_init(&w, to);
    json_string(&w, text);
    return json_writer_finish(&w);
}

/* Appends the members that the step and the rest of the path name, one within the other. */
static enum status append_members(struct buf *to, struct path_step step, const char *rest,
                                  vigil_bytes value)
{
    size_t open = 0;
    for (;; open++) {
        if (step.type == PATH_INDEX)
            return ST_INVALID;
        TRY(append_string(to, step.key));
        TRY(buf_append_text(to, ":"));
        if (!*rest)
            break;
        if (!path_next(&rest, false, &step))
            return ST_INVALID;
        TRY(buf_append_text(to, "{"));
    }
    TRY(buf_append(to, slice_of_bytes(value)));
    while (open-- > 0)
        TRY(buf_append_text(to, "}"));
    return ST_OK;
}

/* The text up to `upto`, which is a position in it. */
static enum status append_before(struct buf *to, vigil_bytes json, const void *upto)
{
    return buf_append(to,
                      slice_of(json.data, (size_t)((const char *)upto - (const char *)json.data)));
}

static enum status append_after(struct buf *to, vigil_bytes json, const void *from)
{
    const char *end = (const char *)json.data + json.size;
    return buf_append(to, slice_of(from, (size_t)(end - (const char *)from)));
}

static enum status set(struct buf *to, vigil_bytes json, const char *path, vigil_bytes value)
{
    vigil_bytes part;
    struct path_step step;
    if (!trim(&json) || !trim(&value))
        return ST_INVALID;
    part = json;
    for (const char *at = path; *at;) {
        if (!path_next(&at, at == path, &step))
            return ST_INVALID;
        enum status status = enter(&part, &step);
        if (status == ST_AGAIN) {
            /* Adds a member at the end of an object that is a part of the text. */
            vigil_bytes first;
            const char *end = (const char *)part.data + part.size - 1; /* its closing bracket */
            TRY(append_before(to, json, end));
            if (find_item(part, 0, &first))
                TRY(buf_append_text(to, ","));
            TRY(append_members(to, step, at, value));
            return append_after(to, json, end);
        }
        TRY(status);
    }
    TRY(append_before(to, json, part.data));
    TRY(buf_append(to, slice_of_bytes(value)));
    return append_after(to, json, (const char *)part.data + part.size);
}

int vigil_json_set(vigil_bytes json, const char *path, vigil_bytes value, vigil_bytes *ret_json)
{
    struct buf text = {0};
    return finish(set(&text, json, path, value), &text, ret_json);
}

int vigil_json_set_text(vigil_bytes json, const char *path, const char *text, vigil_bytes *ret_json)
{
    AUTO(buf_fini) struct buf quoted = {0};
    struct buf result = {0};
    enum status status = append_string(&quoted, slice_from_text(text));
    if (status == ST_OK)
        status = set(&result, json, path, vigil_bytes_of(quoted.ptr, quoted.len));
    return finish(status, &result, ret_json);
}

/* -- Lists of metadata in both formats -- */

enum { META_FINALIZERS = 14, META_OWNERS = 13 };

struct metadata_list {
    bool is_protobuf;
    uint32_t field;
    vigil_json_iterator json;
    vigil_pb_iterator protobuf;
};

static struct metadata_list list_of(const vigil_kube_object *object, const char *path,
                                    uint32_t field)
{
    vigil_bytes json = vigil_kube_object_json(object), items = {0};
    vigil_pb_value metadata = {0};
    if (json.size)
        vigil_json_find(json, path, &items);
    else
        vigil_pb_find(vigil_kube_object_protobuf(object), "1", &metadata);
    return (struct metadata_list){
        .is_protobuf = json.size == 0,
        .field = field,
        .json = vigil_json_iterate(items),
        .protobuf = vigil_pb_iterate(metadata.bytes),
    };
}

/* The item is JSON, or the bytes of the field. */
static bool list_next(struct metadata_list *list, vigil_bytes *ret_item)
{
    uint32_t field;
    vigil_pb_value value;
    if (!list->is_protobuf)
        return vigil_json_next(&list->json, NULL, ret_item);
    while (vigil_pb_next(&list->protobuf, &field, &value)) {
        if (field != list->field || value.type != VIGIL_PB_BYTES)
            continue;
        *ret_item = value.bytes;
        return true;
    }
    return false;
}

static bool item_is(const struct metadata_list *list, vigil_bytes item, const char *text)
{
    return list->is_protobuf ? slice_equal(slice_of_bytes(item), slice_from_text(text))
                             : vigil_json_is(item, text);
}

/* -- Finalizers -- */

int vigil_kube_object_is_deleting(const vigil_kube_object *object)
{
    vigil_bytes time, json = vigil_kube_object_json(object);
    vigil_pb_value value;
    if (json.size == 0)
        return vigil_pb_find(vigil_kube_object_protobuf(object), "1.9", &value);
    return vigil_json_find(json, "metadata.deletionTimestamp", &time) &&
           vigil_json_type_of(time) == VIGIL_JSON_TEXT;
}

int vigil_kube_object_has_finalizer(const vigil_kube_object *object, const char *finalizer)
{
    vigil_bytes item;
    struct metadata_list list = list_of(object, "metadata.finalizers", META_FINALIZERS);
    while (list_next(&list, &item)) {
        if (item_is(&list, item, finalizer))
            return 1;
    }
    return 0;
}

static int make_patch(const vigil_kube_object *object, const char *finalizer, bool adds,
                      vigil_bytes *ret_patch)
{
    struct buf text = {0};
    struct json_writer w;
    vigil_bytes uid = vigil_kube_object_uid(object), version = vigil_kube_object_version(object);
    if (!uid.size || !version.size)
        return VIGIL_ERROR_ARGUMENT;
    json_writer_init(&w, &text);
    json_begin_object(&w);
    json_member_object(&w, "metadata");
    json_member_string(&w, "uid", slice_of_bytes(uid));
    json_member_string(&w, "resourceVersion", slice_of_bytes(version));
    json_member_array(&w, "finalizers");
    /* Those of the object without this one. */
    vigil_bytes item;
    struct metadata_list list = list_of(object, "metadata.finalizers", META_FINALIZERS);
    while (list_next(&list, &item)) {
        if (item_is(&list, item, finalizer))
            continue;
        if (list.is_protobuf)
            json_string(&w, slice_of_bytes(item));
        else
            json_raw(&w, slice_of_bytes(item));
    }
    if (adds)
        json_text(&w, finalizer);
    json_end_array(&w);
    json_end_object(&w);
    json_end_object(&w);
    return finish(json_writer_finish(&w), &text, ret_patch);
}

/* A patch, if the object is not yet as it shall be. */
static int change(const vigil_kube_object *object, const char *finalizer, bool adds,
                  vigil_bytes *ret_patch)
{
    *ret_patch = vigil_bytes_of(NULL, 0);
    if (vigil_kube_object_has_finalizer(object, finalizer) == adds)
        return VIGIL_OK;
    return make_patch(object, finalizer, adds, ret_patch);
}

int vigil_kube_add_finalizer(const vigil_kube_object *object, const char *finalizer,
                             vigil_bytes *ret_patch)
{
    return change(object, finalizer, true, ret_patch);
}

int vigil_kube_remove_finalizer(const vigil_kube_object *object, const char *finalizer,
                                vigil_bytes *ret_patch)
{
    return change(object, finalizer, false, ret_patch);
}

/* -- Owners -- */

/* Where the parts of an owner reference are. */
static const struct {
    const char *key;
    uint32_t field;
} owner_parts[] = {{"apiVersion", 5}, {"kind", 1}, {"name", 3}, {"uid", 4}};

static vigil_bytes owner_part(const struct metadata_list *list, vigil_bytes reference, size_t part)
{
    if (list->is_protobuf) {
        struct slice bytes = protobuf_bytes(slice_of_bytes(reference), owner_parts[part].field);
        return vigil_bytes_of(bytes.ptr, bytes.len);
    }
    return json_plain_text(reference, owner_parts[part].key);
}

static bool is_controller(const struct metadata_list *list, vigil_bytes reference)
{
    vigil_bytes truth;
    vigil_pb_value value;
    if (list->is_protobuf)
        return vigil_pb_find(reference, "6", &value) && value.number == 1;
    return vigil_json_find(reference, "controller", &truth) && vigil_json_is_true(truth);
}

int vigil_kube_object_controller(const vigil_kube_object *object, vigil_kube_owner *ret_owner)
{
    vigil_bytes reference;
    struct metadata_list list = list_of(object, "metadata.ownerReferences", META_OWNERS);
    while (list_next(&list, &reference)) {
        if (!is_controller(&list, reference))
            continue;
        ret_owner->api_version = owner_part(&list, reference, 0);
        ret_owner->kind = owner_part(&list, reference, 1);
        ret_owner->name = owner_part(&list, reference, 2);
        ret_owner->uid = owner_part(&list, reference, 3);
        return 1;
    }
    return 0;
}

int vigil_kube_object_is_controlled_by(const vigil_kube_object *object,
                                       const vigil_kube_object *owner)
{
    vigil_kube_owner controller;
    vigil_bytes uid = vigil_kube_object_uid(owner);
    return uid.size && vigil_kube_object_controller(object, &controller) &&
           slice_equal(slice_of_bytes(controller.uid), slice_of_bytes(uid));
}

int vigil_kube_owner_reference(const vigil_kube_object *owner, const char *api_version,
                               const char *kind, int controller, vigil_bytes *ret_json)
{
    struct buf text = {0};
    struct json_writer w;
    const vigil_bytes parts[COUNT_OF(owner_parts)] = {
        api_version ? vigil_text(api_version) : vigil_kube_object_api_version(owner),
        kind ? vigil_text(kind) : vigil_kube_object_kind(owner),
        vigil_kube_object_name(owner),
        vigil_kube_object_uid(owner),
    };
    json_writer_init(&w, &text);
    json_begin_object(&w);
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        if (parts[i].size == 0)
            return finish(ST_INVALID, &text, ret_json);
        json_member_string(&w, owner_parts[i].key, slice_of_bytes(parts[i]));
    }
    if (controller) {
        json_member_bool(&w, "controller", true);
        json_member_bool(&w, "blockOwnerDeletion", true);
    }
    json_end_object(&w);
    return finish(json_writer_finish(&w), &text, ret_json);
}
