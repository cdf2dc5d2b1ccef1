#include "kube/request/tokens.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct kube_user *find(const struct kube_tokens *tokens, const char *field)
{
    return kube_tokens_find(tokens, slice_from_text(field));
}

static void users_are_found_by_their_tokens(void **state)
{
    (void)state;
    struct kube_tokens *tokens;
    struct error error;
    const char *text = "# who\nsecret,jane,1,\"a,b\"\r\n\nother,joe,\nthird,jim,3,c";
    assert_int_equal(kube_tokens_parse("f", slice_from_text(text), &tokens, &error), ST_OK);
    const struct kube_user *user = find(tokens, "Bearer secret");
    assert_non_null(user);
    assert_true(slice_is(user->name, "jane"));
    assert_true(slice_is(user->groups, "a,b"));
    assert_true(slice_is(find(tokens, "bearer other")->name, "joe"));
    assert_true(slice_is(find(tokens, "Bearer third")->groups, "c"));
    static const char *const nobody[] = {"",        "Bearer ",        "Bearer secre",  "secret",
                                         "Basic x", "Bearer secrets", "Bearer  secret"};
    for (size_t i = 0; i < COUNT_OF(nobody); i++)
        assert_null(find(tokens, nobody[i]));
    kube_tokens_free(tokens);
}

static void invalid_file_is_refused_with_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } files[] = {
        {"", "f: there is no token in it"},
        {"a,b,c\nx\n", "f: line 2 is not: token,user,uid,\"group1,group2\""},
        {",b,c\n", "f: line 1 is not: token,user,uid,\"group1,group2\""},
        {"a,b,c,\"d\n", "f: line 1 is not: token,user,uid,\"group1,group2\""},
        {"a,b,c,d,e\n", "f: line 1 is not: token,user,uid,\"group1,group2\""},
    };
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        struct kube_tokens *tokens;
        struct error error;
        assert_int_equal(kube_tokens_parse("f", slice_from_text(files[i].text), &tokens, &error),
                         ST_INVALID);
        assert_string_equal(error.text, files[i].why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(users_are_found_by_their_tokens),
        cmocka_unit_test(invalid_file_is_refused_with_its_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
