#include "codec/pb/pb.h"

#include "codec/pb/health.pb.h"
#include "codec/pb/rpc.pb.h"
#include "codec/pb/wire.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void check_field(const struct pb_message *type, const struct pb_field *field)
{
    size_t bytes = field->label == PB_REPEATED ? sizeof(struct pb_array) : field->item_bytes;
    assert_true(field->offset + bytes <= type->struct_bytes);
    assert_true(field->item_bytes > 0);
    assert_true(field->name[0] && field->json_name[0]);
    assert_ptr_equal(pb_field_find(type, pb_field_number(field)), field);
    if (field->kind == PB_KIND_MESSAGE)
        assert_true(field->message->struct_bytes > 0);
    if (field->kind == PB_KIND_ENUM)
        assert_true(field->enumeration->value_count > 0);
    bool is_bytes = field->kind >= PB_KIND_STRING;
    bool is_len = is_bytes || field->label == PB_REPEATED;
    assert_int_equal(field->tag & 7, is_len ? PB_WIRE_LEN : PB_WIRE_VARINT);
}

static void tables_are_sound(void **state)
{
    (void)state;
    assert_true(pb_message_count > 100);
    for (size_t i = 0; i < pb_message_count; i++) {
        const struct pb_message *type = pb_messages[i];
        uint32_t last = 0;
        for (size_t k = 0; k < type->field_count; k++) {
            check_field(type, &type->fields[k]);
            assert_true(pb_field_number(&type->fields[k]) > last);
            last = pb_field_number(&type->fields[k]);
        }
        unsigned direct = 0;
        for (size_t k = 0; k < PB_DIRECT_NUMBERS; k++)
            direct += type->direct[k] != 0;
        assert_true(direct <= type->field_count);
    }
}

static void items_are_not_larger_than_the_limit(void **state)
{
    (void)state;
    for (size_t i = 0; i < pb_message_count; i++) {
        for (size_t k = 0; k < pb_messages[i]->field_count; k++) {
            const struct pb_field *field = &pb_messages[i]->fields[k];
            if (field->label == PB_REPEATED)
                assert_true(field->item_bytes <= PB_ITEM_BYTES_MAX);
        }
    }
}

static void methods_have_paths(void **state)
{
    (void)state;
    assert_string_equal(PB_KV_RANGE_STREAM_PATH, "/etcdserverpb.KV/RangeStream");
    assert_string_equal(PB_MAINTENANCE_HASH_KV_PATH, "/etcdserverpb.Maintenance/HashKV");
    assert_string_equal(PB_HEALTH_CHECK_PATH, "/grpc.health.v1.Health/Check");
}

static void enums_have_names(void **state)
{
    (void)state;
    const struct pb_field *field = pb_field_find(&pb_range_request_table, 5);
    assert_string_equal(field->name, "sort_order");
    assert_string_equal(field->json_name, "sortOrder");
    assert_ptr_equal(field->enumeration, &pb_sort_order_names);
    assert_string_equal(pb_sort_order_names.values[PB_SORT_ORDER_DESCEND].name, "DESCEND");
    assert_int_equal(pb_sort_order_names.value_count, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_sound),
        cmocka_unit_test(items_are_not_larger_than_the_limit),
        cmocka_unit_test(methods_have_paths),
        cmocka_unit_test(enums_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
