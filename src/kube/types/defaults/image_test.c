#include "kube/types/defaults/image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define HEX_64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define WITH_DIGEST "x@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define WITH_LONG_DIGEST \
    "x@sha256:0aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define LATEST_WITH_DIGEST \
    "x:latest@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

/* As a kube-apiserver decides between Always and IfNotPresent. */
static void only_valid_references_without_another_tag_are_latest(void **state)
{
    static const char *const latest[] = {"nginx",
                                         "nginx:latest",
                                         "localhost:5000/a/b",
                                         "localhost:5000/a:latest",
                                         "Host/a",
                                         "a__b",
                                         "a--b",
                                         "localhost/x",
                                         "[::1]:5000/x",
                                         "h:1/x:latest",
                                         LATEST_WITH_DIGEST};
    static const char *const others[] = {"",
                                         "nginx:1",
                                         WITH_DIGEST,
                                         "UPPER",
                                         "a/B",
                                         "a//b",
                                         "a___b",
                                         "a.-b",
                                         "x:",
                                         "x:-t",
                                         "x_",
                                         "x:latest@sha256:12",
                                         HEX_64,
                                         "-a",
                                         "a b",
                                         "\xc3\xbc",
                                         "/a",
                                         "a/",
                                         "[::1/x",
                                         "host.example:port/x",
                                         "[]/x",
                                         "x@",
                                         WITH_LONG_DIGEST,
                                         ":latest"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(latest); i++) {
        if (!image_is_latest(slice_from_text(latest[i])))
            fail_msg("%s", latest[i]);
    }
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        if (image_is_latest(slice_from_text(others[i])))
            fail_msg("%s", others[i]);
    }
}

static void long_names_and_tags_are_invalid(void **state)
{
    char text[600];
    (void)state;
    snprintf(text, sizeof(text), "%0255d", 1);
    assert_true(image_is_latest(slice_from_text(text)));
    snprintf(text, sizeof(text), "%0256d", 1);
    assert_false(image_is_latest(slice_from_text(text)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_valid_references_without_another_tag_are_latest),
        cmocka_unit_test(long_names_and_tags_are_invalid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
