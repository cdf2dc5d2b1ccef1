/* The operations of a kind, in both versions of OpenAPI. */
#include "kube/types/schema/openapi.h"
#include "kube/types/schema/openapi_internal.h"

#include <ctype.h>
#include <stdio.h>

enum { PATH_BYTES = 512 };

struct openapi_operation {
    const char *method, *action;
    const char *verb; /* verb in its id */
    bool writes;      /* accepts dryRun, fieldManager and fieldValidation */
    bool lists;
};

/* A path with its operations. */
struct openapi_path {
    const struct kube_kind *kind;
    const char *text, *subresource; /* subresource: "Status", or "" */
    bool everywhere;                /* objects of all namespaces */
    enum kube_openapi_form form;
};

/* Version 3 has the type of a parameter in a schema of its own. */
static void write_string_type(struct json_writer *w, enum kube_openapi_form form)
{
    if (form == KUBE_OPENAPI_V3) {
        json_member_object(w, "schema");
    }
    json_member_text(w, "type", "string");
    if (form == KUBE_OPENAPI_V3)
        json_end_object(w);
}

static void write_query(struct json_writer *w, const char *name, enum kube_openapi_form form)
{
    json_begin_object(w);
    json_member_text(w, "name", name);
    json_member_text(w, "in", "query");
    write_string_type(w, form);
    json_end_object(w);
}

static void write_body(struct json_writer *w, const struct kube_type *type)
{
    json_begin_object(w);
    json_member_text(w, "name", "body");
    json_member_text(w, "in", "body");
    json_member_bool(w, "required", true);
    json_member_object(w, "schema");
    if (type)
        openapi_write_ref(w, type, KUBE_OPENAPI_V2);
    else
        json_member_text(w, "type", "object");
    json_end_object(w);
    json_end_object(w);
}

static void write_parameters(struct json_writer *w, const struct openapi_path *path,
                             const struct openapi_operation *operation)
{
    static const char *const of_writes[] = {"dryRun", "fieldManager", "fieldValidation"};
    static const char *const of_lists[] = {"continue", "fieldSelector", "labelSelector",
                                           "resourceVersion"};
    /* Decoders of OpenAPI leave an empty list out, so a document with one would not be the same
     * after it was decoded and encoded. */
    if (!operation->writes && !operation->lists)
        return;
    json_member_array(w, "parameters");
    if (path->form == KUBE_OPENAPI_V2 && operation->writes)
        write_body(w,
                   strcmp(operation->method, "patch") == 0 ? NULL : kube_type_of_kind(path->kind));
    for (size_t i = 0; operation->writes && i < COUNT_OF(of_writes); i++)
        write_query(w, of_writes[i], path->form);
    for (size_t i = 0; operation->lists && i < COUNT_OF(of_lists); i++)
        write_query(w, of_lists[i], path->form);
    json_end_array(w);
}

/* The content types of a PATCH: kubectl looks for the one it would use. */
static const char *const patch_types[] = {
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
};

static size_t patch_type_count(const struct kube_kind *kind)
{
    return COUNT_OF(patch_types) - (kind->flags & KUBE_CUSTOM ? 1 : 0);
}

/* Version 3 alone: what a PATCH, POST or PUT contains. */
static void write_request_body(struct json_writer *w, const struct kube_kind *kind, bool patch)
{
    const struct kube_type *type = kube_type_of_kind(kind);
    json_member_object(w, "requestBody");
    json_member_object(w, "content");
    for (size_t i = 0; i < (patch ? patch_type_count(kind) : 1); i++) {
        json_member_object(w, patch ? patch_types[i] : "*/*");
        if (!patch && type) {
            json_member_object(w, "schema");
            openapi_write_ref(w, type, KUBE_OPENAPI_V3);
            json_end_object(w);
        }
        json_end_object(w);
    }
    json_end_object(w);
    if (!patch) {
        json_member_bool(w, "required", true);
    }
    json_end_object(w);
}

static void write_texts(struct json_writer *w, const char *key, const char *const *texts,
                        size_t count)
{
    json_member_array(w, key);
    for (size_t i = 0; i < count; i++)
        json_text(w, texts[i]);
    json_end_array(w);
}

/* -- Names of operations -- */

/* Appends a word with a capital letter. */
static size_t append_word(char *to, size_t room, const char *word, size_t len)
{
    if (!len || len + 1 > room)
        return 0;
    snprintf(to, room, "%.*s", (int)len, word);
    to[0] = (char)toupper((unsigned char)to[0]);
    return len;
}

/* "rbac.authorization.k8s.io" is RbacAuthorization, "" is Core. */
static size_t append_group(char *to, size_t room, const char *group)
{
    size_t len = 0, end = strlen(group);
    const char *own = strstr(group, ".k8s.io");
    if (own)
        end = (size_t)(own - group);
    if (!end)
        return append_word(to, room, "core", strlen("core"));
    for (size_t at = 0; at < end;) {
        size_t word = strcspn(group + at, ".-");
        word = size_min(word, end - at);
        len += append_word(to + len, room - len, group + at, word);
        at += word + 1;
    }
    return len;
}

/* "listCoreV1NamespacedPod", by which generated clients name their functions. */
static void write_id(struct json_writer *w, const struct openapi_path *path,
                     const struct openapi_operation *operation)
{
    const struct kube_kind *kind = path->kind;
    char text[PATH_BYTES] = "";
    bool namespaced = kind->flags & KUBE_NAMESPACED && !path->everywhere;
    size_t len = (size_t)snprintf(text, sizeof(text), "%s", operation->verb);
    len += append_group(text + len, sizeof(text) - len, kind->group);
    len += append_word(text + len, sizeof(text) - len, kind->version, strlen(kind->version));
    bool collection = strcmp(operation->action, "deletecollection") == 0;
    snprintf(text + len, sizeof(text) - len, "%s%s%.64s%s%s", collection ? "Collection" : "",
             namespaced ? "Namespaced" : "", kind->kind, path->subresource,
             path->everywhere ? "ForAllNamespaces" : "");
    json_member_text(w, "operationId", text);
}

/* -- Version 2 alone -- */

static void write_v2(struct json_writer *w, const struct openapi_path *path,
                     const struct openapi_operation *operation)
{
    static const char *const types[] = {"application/json", "application/yaml",
                                        "application/vnd.kubernetes.protobuf"};
    if (strcmp(operation->method, "patch") == 0)
        write_texts(w, "consumes", patch_types, patch_type_count(path->kind));
    else
        write_texts(w, "consumes", (const char *const[]){"*/*"}, 1);
    write_texts(w, "produces", types, COUNT_OF(types));
}

/* -- Both -- */

/* The parameters in the path. */
static void write_places(struct json_writer *w, const char *path, enum kube_openapi_form form)
{
    static const char *const names[] = {"name", "namespace"};
    if (!strchr(path, '{'))
        return;
    json_member_array(w, "parameters");
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char text[32];
        snprintf(text, sizeof(text), "{%s}", names[i]);
        if (!strstr(path, text))
            continue;
        json_begin_object(w);
        json_member_text(w, "name", names[i]);
        json_member_text(w, "in", "path");
        json_member_bool(w, "required", true);
        write_string_type(w, form);
        json_end_object(w);
    }
    json_end_array(w);
}

static void write_response(struct json_writer *w, const struct kube_type *type,
                           enum kube_openapi_form form)
{
    bool v3 = form == KUBE_OPENAPI_V3;
    json_member_object(w, "responses");
    json_member_object(w, "200");
    json_member_text(w, "description", "OK");
    if (type && v3) {
        json_member_object(w, "content");
        json_member_object(w, "application/json");
    }
    if (type) {
        json_member_object(w, "schema");
        openapi_write_ref(w, type, form);
        json_end_object(w);
    }
    for (int i = 0; type && v3 && i < 2; i++)
        json_end_object(w);
    json_end_object(w);
    json_end_object(w);
}

static void write_operation(struct json_writer *w, const struct openapi_path *path,
                            const struct openapi_operation *operation)
{
    const struct kube_kind *kind = path->kind;
    char version[KUBE_API_VERSION_BYTES];
    struct slice of = slice_from_text(kube_kind_api_version(kind, version));
    /* A deletion answers with the object or with a Status. */
    const struct kube_type *type = strcmp(operation->action, "list") == 0
                                       ? kube_type_find(of, slice_from_text(kind->list_kind))
                                   : strcmp(operation->method, "delete") == 0
                                       ? NULL
                                       : kube_type_of_kind(kind);
    json_member_object(w, operation->method);
    write_id(w, path, operation);
    if (path->form == KUBE_OPENAPI_V2)
        write_v2(w, path, operation);
    write_parameters(w, path, operation);
    if (path->form == KUBE_OPENAPI_V3 && operation->writes)
        write_request_body(w, kind, strcmp(operation->method, "patch") == 0);
    write_response(w, type, path->form);
    json_member_text(w, "x-kubernetes-action", operation->action);
    json_key(w, "x-kubernetes-group-version-kind");
    openapi_write_gvk(w, of, slice_from_text(kind->kind));
    json_end_object(w);
}

static void write_path(struct json_writer *w, const struct openapi_path *path,
                       const struct openapi_operation *operations, size_t count)
{
    json_member_object(w, path->text);
    for (size_t i = 0; i < count; i++)
        write_operation(w, path, &operations[i]);
    write_places(w, path->text, path->form);
    json_end_object(w);
}

void kube_openapi_write_paths(struct json_writer *w, const struct kube_kind *kind,
                              enum kube_openapi_form form)
{
    static const struct openapi_operation make = {"post", "post", "create", true, false};
    static const struct openapi_operation collection[] = {
        {"get", "list", "list", false, true},
        {"post", "post", "create", true, false},
        {"delete", "deletecollection", "delete", false, true}};
    static const struct openapi_operation object[] = {{"get", "get", "read", false, false},
                                                      {"put", "put", "replace", true, false},
                                                      {"patch", "patch", "patch", true, false},
                                                      {"delete", "delete", "delete", false, false}};
    char path[PATH_BYTES], sub[PATH_BYTES + 16], document[OPENAPI_NAME_BYTES];
    bool namespaced = kind->flags & KUBE_NAMESPACED, computed = kind->flags & KUBE_COMPUTED;
    struct openapi_path at = {kind, path, "", namespaced, form};
    openapi_document_of(kind, document);
    if (namespaced && !(kind->flags & KUBE_CREATE_ONLY)) {
        snprintf(path, sizeof(path), "/%s/%s", document, kind->plural);
        write_path(w, &at, collection, 1);
    }
    at.everywhere = false;
    snprintf(path, sizeof(path), "/%s/%s%s", document, namespaced ? "namespaces/{namespace}/" : "",
             kind->plural);
    if (kind->flags & KUBE_CREATE_ONLY) {
        write_path(w, &at, &make, 1);
        return;
    }
    /* Namespaces cannot be deleted all at once. */
    bool spaces = !kind->group[0] && strcmp(kind->plural, "namespaces") == 0;
    write_path(w, &at, collection, computed ? 1 : COUNT_OF(collection) - (spaces ? 1 : 0));
    at.text = sub;
    snprintf(sub, sizeof(sub), "%s/{name}", path);
    write_path(w, &at, object, computed ? 1 : COUNT_OF(object));
    if (kind->flags & KUBE_HAS_STATUS) {
        at.subresource = "Status";
        snprintf(sub, sizeof(sub), "%s/{name}/status", path);
        write_path(w, &at, object, 3);
    }
}
