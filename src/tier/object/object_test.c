/* Objects in JSON and protobuf: what selectors see, items of lists, and other versions. */
#include "tier/object/object.h"

#include "kube/call/format.h"
#include "kube/request/selection.h"
#include "kubeclient/data/list_reader.h"
#include "kubeclient/data/received_event.h"
#include "tier/object/frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define TEXT(text) SLICE_LITERAL(text)

static const char pod_json[] =
    "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\",\"namespace\":\"n\","
    "\"resourceVersion\":\"99\",\"labels\":{\"app\":\"web\",\"q\":\"a\\\"b\"}},\"spec\":{"
    "\"nodeName\":"
    "\"node-1\",\"hostNetwork\":true,\"containers\":[{\"name\":\"c\"}]},\"status\":{\"phase\":"
    "\"Running\"}}";

static const struct kube_kind *pods(void)
{
    const struct kube_kind *kind = kube_builtin_find(TEXT(""), TEXT("v1"), TEXT("pods"));
    assert_non_null(kind);
    return kind;
}

/* The same pod as the kube-apiserver sends it in protobuf. */
static void encode_pod(const char *json, struct buf *to)
{
    assert_int_equal(kube_format_write(KUBE_PROTOBUF, slice_from_text(json), to), ST_OK);
}

static void assert_selected(const struct kube_object *view, const char *labels, const char *fields,
                            bool expected)
{
    struct kube_selections selections;
    struct kube_selection *selection;
    struct error error;
    kube_selections_init(&selections, 1);
    assert_int_equal(kube_selection_get(&selections, slice_from_text(labels),
                                        slice_from_text(fields), pods(), &selection, &error),
                     ST_OK);
    assert_int_equal(kube_selection_matches(selection, view), expected);
    kube_selection_unref(selection);
    kube_selections_fini(&selections);
}

static void assert_view(enum tier_encoding encoding, struct slice bytes)
{
    AUTO(buf_fini) struct buf scratch = {0};
    struct kube_object view;
    assert_int_equal(tier_object_view(encoding, pods(), bytes, &scratch, &view), ST_OK);
    assert_selected(&view, "app=web", "", true);
    assert_selected(&view, "app=db", "", false);
    assert_selected(&view, "!app", "", false);
    assert_selected(&view, "", "metadata.name=a,metadata.namespace=n", true);
    assert_selected(&view, "", "metadata.name=b", false);
    assert_selected(&view, "", "spec.nodeName=node-1,status.phase=Running", true);
    assert_selected(&view, "", "spec.nodeName=node-2", false);
    assert_selected(&view, "", "spec.hostNetwork=true", true);
    assert_selected(&view, "", "spec.restartPolicy=Always", true); /* its default */
}

static void selectors_see_both_encodings(void **state)
{
    AUTO(buf_fini) struct buf pod = {0};
    (void)state;
    encode_pod(pod_json, &pod);
    assert_view(TIER_JSON, slice_from_text(pod_json));
    assert_view(TIER_PROTOBUF, buf_slice(&pod));
}

static void refuses_what_is_not_an_object(void **state)
{
    AUTO(buf_fini) struct buf scratch = {0};
    struct kube_object view;
    (void)state;
    assert_int_equal(tier_object_view(TIER_JSON, pods(), TEXT("[]"), &scratch, &view),
                     ST_MALFORMED);
    assert_int_equal(tier_object_view(TIER_PROTOBUF, pods(), TEXT("k8s\0\x12"), &scratch, &view),
                     ST_MALFORMED);
    assert_int_equal(tier_object_view(TIER_PROTOBUF, pods(), TEXT(""), &scratch, &view),
                     ST_MALFORMED);
    assert_int_equal(tier_object_append_at(TIER_JSON, TEXT("{\"metadata\":{}}"), 1, &scratch),
                     ST_MALFORMED);
    assert_int_equal(
        tier_object_append_at(TIER_PROTOBUF, TEXT("k8s\0\x12\x02\x0a\x00"), 1, &scratch),
        ST_MALFORMED);
}

/* Whatever is cut off, nothing is read beyond the end. */
static void survives_any_end(void **state)
{
    AUTO(buf_fini) struct buf pod = {0};
    AUTO(buf_fini) struct buf scratch = {0};
    struct kube_object view;
    (void)state;
    encode_pod(pod_json, &pod);
    for (size_t len = 0; len < pod.len; len++) {
        uint8_t *cut = test_malloc(len + 1);
        memcpy(cut, pod.ptr, len);
        (void)!tier_object_view(TIER_PROTOBUF, pods(), slice_of(cut, len), &scratch, &view);
        scratch.len = 0;
        (void)!tier_object_append_at(TIER_PROTOBUF, slice_of(cut, len), 7, &scratch);
        test_free(cut);
    }
}

static void another_version_changes_nothing_else(void **state)
{
    static const uint64_t versions[] = {1, 99, 100, UINT64_C(12345678901234567890)};
    AUTO(buf_fini) struct buf pod = {0};
    (void)state;
    encode_pod(pod_json, &pod);
    for (size_t i = 0; i < COUNT_OF(versions); i++) {
        AUTO(buf_fini) struct buf json = {0};
        AUTO(buf_fini) struct buf protobuf = {0};
        AUTO(buf_fini) struct buf back = {0};
        char text[32];
        snprintf(text, sizeof(text), "\"%llu\"", (unsigned long long)versions[i]);
        assert_int_equal(
            tier_object_append_at(TIER_JSON, slice_from_text(pod_json), versions[i], &json), ST_OK);
        assert_non_null(memmem(json.ptr, json.len, text, strlen(text)));
        /* The same in protobuf is the protobuf of that. */
        assert_int_equal(
            tier_object_append_at(TIER_PROTOBUF, buf_slice(&pod), versions[i], &protobuf), ST_OK);
        assert_int_equal(kube_format_write(KUBE_PROTOBUF, buf_slice(&json), &back), ST_OK);
        assert_int_equal(back.len, protobuf.len);
        assert_memory_equal(back.ptr, protobuf.ptr, back.len);
        assert_int_equal(tier_object_append_at(TIER_PROTOBUF, buf_slice(&protobuf), 99, &json),
                         ST_OK);
    }
}

static void items_lose_their_kind(void **state)
{
    struct slice head;
    (void)state;
    struct slice rest = tier_object_item(slice_from_text(pod_json), &head);
    assert_true(slice_is(head, "{"));
    assert_true(slice_has_prefix(rest, TEXT("\"metadata\":")));
    /* Those of a custom resource have it, in another order. */
    struct slice custom =
        TEXT("{\"apiVersion\":\"a/v1\",\"metadata\":{\"name\":\"x\"},\"kind\":\"A\"}");
    rest = tier_object_item(custom, &head);
    assert_int_equal(head.len, 0);
    assert_true(slice_equal(rest, custom));
}

/* A frame is read back by the client's own reader. */
static void assert_frame(enum tier_encoding encoding, struct slice frame, enum received_type type,
                         bool ends_initial, const char *version)
{
    struct received_event event = {0};
    struct error error;
    bool protobuf = tier_encoding_is_protobuf(encoding);
    if (protobuf) {
        size_t len = (size_t)frame.ptr[0] << 24 | (size_t)frame.ptr[1] << 16 |
                     (size_t)frame.ptr[2] << 8 | frame.ptr[3];
        assert_int_equal(len, frame.len - 4);
        frame = slice_sub(frame, 4, len);
    }
    assert_int_equal(protobuf ? received_event_read_protobuf(frame, &event, &error)
                              : received_event_read(frame, &event, &error),
                     ST_OK);
    assert_int_equal(event.type, type);
    assert_int_equal(event.ends_initial_events, ends_initial);
    assert_true(slice_is(event.version, version));
}

static void clients_understand_frames(void **state)
{
    static const struct tier_kind kind = {"Pod", "PodList", "v1", false};
    AUTO(buf_fini) struct buf pod = {0};
    (void)state;
    encode_pod(pod_json, &pod);
    for (enum tier_encoding encoding = TIER_JSON; encoding <= TIER_PROTOBUF; encoding++) {
        AUTO(buf_fini) struct buf frame = {0};
        AUTO(buf_fini) struct buf bookmark = {0};
        AUTO(buf_fini) struct buf end = {0};
        uint8_t head[TIER_EVENT_HEAD_BYTES];
        struct slice bytes = encoding == TIER_JSON ? slice_from_text(pod_json) : buf_slice(&pod);
        size_t len = tier_event_head(encoding, TIER_EVENT_MODIFIED, bytes.len, head);
        assert_int_equal(buf_append(&frame, slice_of(head, len)), ST_OK);
        assert_int_equal(buf_append(&frame, bytes), ST_OK);
        assert_int_equal(buf_append(&frame, tier_event_tail(encoding)), ST_OK);
        assert_frame(encoding, buf_slice(&frame), RECEIVED_MODIFIED, false, "99");
        assert_int_equal(tier_append_bookmark(encoding, &kind, 7, false, &bookmark), ST_OK);
        assert_frame(encoding, buf_slice(&bookmark), RECEIVED_BOOKMARK, false, "7");
        assert_int_equal(tier_append_bookmark(encoding, &kind, 123456, true, &end), ST_OK);
        assert_frame(encoding, buf_slice(&end), RECEIVED_BOOKMARK, true, "123456");
    }
}

static void append_item(enum tier_encoding encoding, struct slice bytes, bool first,
                        struct buf *list)
{
    uint8_t head[TIER_ITEM_HEAD_BYTES];
    struct slice prefix, item;
    if (tier_encoding_is_protobuf(encoding)) {
        item = tier_object_message(bytes);
        prefix = slice_of(head, tier_list_item_head(item.len, head));
    } else {
        item = tier_object_item(bytes, &prefix);
        assert_int_equal(buf_append_text(list, first ? "" : ","), ST_OK);
    }
    assert_int_equal(buf_append(list, prefix), ST_OK);
    assert_int_equal(buf_append(list, item), ST_OK);
}

static void clients_understand_lists(void **state)
{
    static const struct tier_kind kind = {"Pod", "PodList", "v1", false};
    static const struct tier_list_meta meta = {77, SLICE_LITERAL("token"), 12};
    AUTO(buf_fini) struct buf pod = {0};
    (void)state;
    encode_pod(pod_json, &pod);
    for (enum tier_encoding encoding = TIER_JSON; encoding <= TIER_PROTOBUF; encoding++) {
        AUTO(buf_fini) struct buf list = {0};
        struct slice bytes = encoding == TIER_JSON ? slice_from_text(pod_json) : buf_slice(&pod);
        size_t items =
            encoding == TIER_JSON ? 0 : 2 * tier_list_item_bytes(tier_object_message(bytes).len);
        assert_int_equal(tier_append_list_head(encoding, &kind, &meta, items, &list), ST_OK);
        append_item(encoding, bytes, true, &list);
        append_item(encoding, bytes, false, &list);
        assert_int_equal(buf_append(&list, tier_list_tail(encoding)), ST_OK);

        struct list_reader reader;
        struct slice item;
        struct error error;
        list_reader_init(&reader, encoding == TIER_JSON ? FRAMER_JSON : FRAMER_PROTOBUF);
        list_reader_feed(&reader, buf_slice(&list));
        for (int i = 0; i < 2; i++)
            assert_int_equal(list_reader_next(&reader, &item, &error), ST_OK);
        assert_int_equal(list_reader_next(&reader, &item, &error), ST_AGAIN);
        assert_int_equal(list_reader_end(&reader, &error), ST_OK);
        struct list_info info = list_reader_info(&reader);
        assert_true(slice_is(info.kind, "PodList"));
        assert_true(slice_is(info.version, "77"));
        assert_true(slice_is(info.continue_token, "token"));
        assert_int_equal(info.remaining, 12);
        list_reader_fini(&reader);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(selectors_see_both_encodings),
        cmocka_unit_test(refuses_what_is_not_an_object),
        cmocka_unit_test(survives_any_end),
        cmocka_unit_test(another_version_changes_nothing_else),
        cmocka_unit_test(items_lose_their_kind),
        cmocka_unit_test(clients_understand_frames),
        cmocka_unit_test(clients_understand_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
