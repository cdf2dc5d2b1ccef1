#include "codec/json/resent.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#define STORED                                                                    \
    "{\"kind\":\"Lease\",\"metadata\":{\"name\":\"a\",\"labels\":{\"x\":\"y\"}}," \
    "\"spec\":{\"holder\":\"n\",\"seconds\":40,\"time\":\"10:00\"}}"

static bool is_resent(const char *before, const char *after, struct json_resent *ret_resent)
{
    *ret_resent = (struct json_resent){.changed = {"spec", "time"}, .added = {"metadata", "v"}};
    return json_is_resent(ret_resent, slice_from_text(before), slice_from_text(after));
}

static void expect(const char *after, bool wanted)
{
    struct json_resent resent;
    assert_int_equal(is_resent(STORED, after, &resent), wanted);
    if (!wanted)
        return;
    assert_true(slice_is(resent.before, "10:00"));
    assert_true(slice_is(resent.after, "10:10"));
    assert_true(slice_is(resent.version, "7"));
}

static void new_time_is_found(void **state)
{
    (void)state;
    expect("{\"kind\":\"Lease\",\"metadata\":{\"v\":\"7\",\"name\":\"a\",\"labels\":{\"x\":\"y\"}},"
           "\"spec\":{\"holder\":\"n\",\"seconds\":40,\"time\":\"10:10\"}}\n",
           true);
    /* The same, with the version elsewhere. */
    expect("{\"kind\":\"Lease\",\"metadata\":{\"name\":\"a\",\"v\":\"7\",\"labels\":{\"x\":\"y\"}},"
           "\"spec\":{\"holder\":\"n\",\"seconds\":40,\"time\":\"10:10\"}}",
           true);
    expect("{\"kind\":\"Lease\",\"metadata\":{\"name\":\"a\",\"labels\":{\"x\":\"y\"},\"v\":\"7\"},"
           "\"spec\":{\"holder\":\"n\",\"seconds\":40,\"time\":\"10:10\"}}",
           true);
    /* Other orders, and white space between members of the levels that are compared. */
    expect("{ \"spec\":{\"time\":\"10:10\",\"seconds\":40,\"holder\":\"n\"},\n\"metadata\":{"
           "\"name\":\"a\",\"labels\":{\"x\":\"y\"}, \"v\" : \"7\"},\"kind\":\"Lease\"}",
           true);
}

#define META "\"metadata\":{\"v\":\"7\",\"name\":\"a\",\"labels\":{\"x\":\"y\"}}"
#define SPEC "\"spec\":{\"holder\":\"n\",\"seconds\":40,\"time\":\"10:10\"}"

static void everything_else_is_not(void **state)
{
    static const char *const others[] = {
        "",
        "[]",
        "{",
        "{\"kind\":\"Lease\"," META "," SPEC,
        "{\"kind\":\"Lease\"," META "," SPEC "}}",
        "{\"kind\":\"Lease\"," META "," SPEC "} {}",
        /* Members that are missing, are more, or come twice. */
        "{" META "," SPEC "}",
        "{\"kind\":\"Lease\"," META "," SPEC ",\"more\":1}",
        "{\"kind\":\"Lease\",\"kind\":\"Lease\"," META "," SPEC "}",
        "{\"kind\":\"Lease\"," META "," META "," SPEC "}",
        "{\"kind\":\"Lease\"," META ",\"spec\":{\"holder\":\"n\",\"time\":\"10:10\"}}",
        "{\"kind\":\"Lease\"," META
        ",\"spec\":{\"holder\":\"n\",\"seconds\":40,\"time\":\"10:10\",\"more\":1}}",
        "{\"kind\":\"Lease\"," META
        ",\"spec\":{\"holder\":\"n\",\"seconds\":40,\"time\":\"10:10\",\"time\":\"10:20\"}}",
        "{\"kind\":\"Lease\",\"metadata\":{\"name\":\"a\",\"labels\":{\"x\":\"y\"}}," SPEC "}",
        "{\"kind\":\"Lease\",\"metadata\":{\"v\":\"7\",\"v\":\"7\",\"name\":\"a\",\"labels\":{"
        "\"x\":\"y\"}}," SPEC "}",
        /* Another value. */
        "{\"kind\":\"Pod\"," META "," SPEC "}",
        "{\"kind\":\"Lease\",\"metadata\":{\"v\":\"7\",\"name\":\"b\",\"labels\":{\"x\":\"y\"}}"
        "," SPEC "}",
        "{\"kind\":\"Lease\",\"metadata\":{\"v\":\"7\",\"name\":\"a\",\"labels\":{\"x\":\"z\"}}"
        "," SPEC "}",
        "{\"kind\":\"Lease\"," META
        ",\"spec\":{\"holder\":\"n\",\"seconds\":41,\"time\":\"10:10\"}}",
        "{\"kind\":\"Lease\"," META ",\"spec\":7}",
        /* The time itself: of another type, with an escape, unchanged. */
        "{\"kind\":\"Lease\"," META ",\"spec\":{\"holder\":\"n\",\"seconds\":40,\"time\":10}}",
        "{\"kind\":\"Lease\"," META ",\"spec\":{\"holder\":\"n\",\"seconds\":40,\"time\":null}}",
        "{\"kind\":\"Lease\"," META
        ",\"spec\":{\"holder\":\"n\",\"seconds\":40,\"time\":\"10:\\u0031\"}}",
        "{\"kind\":\"Lease\"," META
        ",\"spec\":{\"holder\":\"n\",\"seconds\":40,\"time\":\"10:00\"}}",
        /* The version in a member of metadata, or outside of it. */
        "{\"kind\":\"Lease\",\"metadata\":{\"name\":\"a\",\"labels\":{\"v\":\"7\",\"x\":\"y\"}}"
        "," SPEC "}",
        "{\"v\":\"7\",\"kind\":\"Lease\",\"metadata\":{\"name\":\"a\",\"labels\":{\"x\":\"y\"}}"
        "," SPEC "}",
        "{\"kind\":\"Lease\",\"metadata\":{\"name\":\"a\",\"labels\":{\"x\":\"y\"}},\"v\":"
        "\"7\"," SPEC "}",
        /* A text of the time that ends elsewhere. */
        "{\"kind\":\"Lease\"," META
        ",\"spec\":{\"holder\":\"n\",\"seconds\":40,\"time\":\"10:1\n\"}}",
        "{\"kind\":\"Lease\"," META
        ",\"spec\":{\"holder\":\"n\",\"seconds\":40,\"time\":\"10:10\"}",
        "{\"kind\":\"Lease\"," META
        ",\"spec\":{\"holder\":\"n\",\"seconds\":40,\"time\":\"10:10\"}}}",
        /* A version that is not a text; the same value written in another way. */
        "{\"kind\":\"Lease\",\"metadata\":{\"v\":7,\"name\":\"a\",\"labels\":{\"x\":\"y\"}}," SPEC
        "}",
        "{\"kind\":\"Lease\",\"metadata\":{\"v\":\"7\",\"name\":\"a\",\"labels\":{ "
        "\"x\":\"y\"}}," SPEC "}",
        "{\"k\\u0069nd\":\"Lease\"," META "," SPEC "}",
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(others); i++)
        expect(others[i], false);
}

/* Beyond the number of members that are compared. */
static void many_members_are_not_compared(void **state)
{
    char before[2048] = "{\"spec\":{\"time\":\"1\"},\"metadata\":{", after[4096];
    struct json_resent resent;
    (void)state;
    size_t len = strlen(before);
    for (int members = 1; members <= JSON_RESENT_MEMBERS_MAX; members++) {
        len += (size_t)snprintf(before + len, sizeof(before) - len, "%s\"m%d\":1",
                                members > 1 ? "," : "", members);
        snprintf(before + len, sizeof(before) - len, "}}");
        snprintf(after, sizeof(after), "{\"spec\":{\"time\":\"2\"},\"metadata\":{\"v\":\"7\",%s",
                 before + strlen("{\"spec\":{\"time\":\"1\"},\"metadata\":{"));
        assert_int_equal(is_resent(before, after, &resent), members < JSON_RESENT_MEMBERS_MAX);
    }
}

/* Whatever is inserted and replaced, at whatever place: the same members and values, or not the
 * same. */
static void every_place_is_examined(void **state)
{
    static const char *const inserted[] = {"\"v\":\"7\",", ",\"v\":\"7\"", "\"v\":\"7\"",
                                           "\"v\":7,"};
    char after[512];
    struct json_resent resent;
    size_t found = 0;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(inserted); i++)
        for (size_t at = 0; at <= strlen(STORED); at++) {
            snprintf(after, sizeof(after), "%.*s%s%s", (int)at, STORED, inserted[i], &STORED[at]);
            char *time = strstr(after, "10:00");
            if (!time)
                continue;
            time[3] = '1';
            if (is_resent(STORED, after, &resent))
                found++;
        }
    /* In front of two members, and, with its comma before it, behind two. */
    assert_int_equal(found, 4);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_time_is_found),
        cmocka_unit_test(everything_else_is_not),
        cmocka_unit_test(many_members_are_not_compared),
        cmocka_unit_test(every_place_is_examined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
