#include "kube/types/defaults/quantity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Answers of a kube-apiserver: a quantity, and the same in a resource list. */
static const struct {
    const char *given, *shown, *listed;
} answers[] = {
    {"1000m", "1", "1"},
    {"0.5", "500m", "500m"},
    {"1", "1", "1"},
    {"1.5Gi", "1536Mi", "1536Mi"},
    {"1024Mi", "1Gi", "1Gi"},
    {"1024", "1024", "1024"},
    {"1e3", "1e3", "1e3"},
    {"1E3", "1E3", "1E3"},
    {"12e6", "12e6", "12e6"},
    {"0.0001", "100u", "1m"},
    {"1.0001", "1000100u", "1001m"},
    {"100u", "100u", "1m"},
    {"5000000", "5M", "5M"},
    {"2048Ki", "2Mi", "2Mi"},
    {"0", "0", "0"},
    {"0m", "0", "0"},
    {"0Gi", "0", "0"},
    {"0.1Gi", "107374182400m", "107374182400m"},
    {"1k", "1k", "1k"},
    {"1500", "1500", "1500"},
    {"+1", "+1", "+1"},
    {"-0", "0", "0"},
    {"1.", "1.", "1."},
    {"007", "007", "007"},
    {".5", "500m", "500m"},
    {"1e-3", "1e-3", "1e-3"},
    {"1000000000000000000000", "1", "1"},
    {"3Ei", "3Ei", "3Ei"},
    {"1Ki", "1Ki", "1Ki"},
    {"1025Ki", "1025Ki", "1025Ki"},
    {"500n", "500n", "1m"},
    {"1.23456789", "1234567890n", "1235m"},
    {"1000Ki", "1000Ki", "1000Ki"},
    {"1Mi", "1Mi", "1Mi"},
    {"1000e3", "1e6", "1e6"},
    {"100e-1", "10", "10"},
    {"1e0", "1e0", "1e0"},
    {"10e-1", "1", "1"},
    {"123456789012345678901234567890", "123456789012345678901234567890",
     "123456789012345678901234567890"},
    {"0.00000000001", "1n", "1m"},
    {"1.5", "1500m", "1500m"},
    {"1.50", "1500m", "1500m"},
    {"999999999999999999Ki", "9223372036854775807", "9223372036854775807"},
    {"1e30", "1e30", "1e30"},
    {" 5 ", "5", "5"},
    {"0e3", "0", "0"},
    {"0Ki", "0", "0"},
    {"0.1", "100m", "100m"},
    {"1.1Ki", "1126400m", "1126400m"},
    {"12.5Ki", "12800", "12800"},
    {"1e1", "10", "10"},
};

static void assert_canonical(const char *given, bool milli, const char *expected)
{
    char to[QUANTITY_BYTES];
    struct slice text = quantity_canonical(slice_from_text(given), milli, to);
    if (!slice_is(text, expected))
        fail_msg("%s is %.*s instead of %s", given, SLICE_ARGS(text), expected);
}

static void quantities_are_written_as_kubernetes_writes_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        assert_canonical(answers[i].given, false, answers[i].shown);
        assert_canonical(answers[i].given, true, answers[i].listed);
    }
}

static void a_canonical_quantity_stays_as_it_is(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        if (strcmp(answers[i].shown, "1") != 0)
            assert_canonical(answers[i].shown, false, answers[i].shown);
    }
}

/* Every length and every suffix, also where nothing fits any more: it ends, and it fits. */
static void long_quantities_do_no_harm(void **state)
{
    static const char *const suffixes[] = {
        "", "n", "E", "Ki", "Ei", "e9", "e99999", "e-99999", "e9999999999999999999"};
    (void)state;
    char text[256], to[QUANTITY_BYTES];
    for (size_t digits = 1; digits < 200; digits++) {
        for (size_t i = 0; i < COUNT_OF(suffixes); i++) {
            memset(text, '9', digits);
            memcpy(text + digits, suffixes[i], strlen(suffixes[i]) + 1);
            if (digits % 3 == 0)
                text[digits / 2] = '.';
            assert_true(quantity_canonical(slice_from_text(text), i % 2, to).len);
        }
    }
    assert_int_equal(quantity_canonical(SLICE_EMPTY, false, to).len, 1);
}

static struct quantity read_quantity(const char *text)
{
    struct quantity quantity;
    assert_true(quantity_read(slice_from_text(text), &quantity));
    return quantity;
}

static void quantities_are_added_and_compared_by_value(void **state)
{
    char to[QUANTITY_BYTES];
    struct quantity sum = {0}, one = read_quantity("300m"), other = read_quantity("1");
    (void)state;
    assert_true(quantity_add(&sum, &one) && quantity_add(&sum, &other));
    assert_true(slice_is(quantity_write(&sum, to), "1300m"));
    one = read_quantity("1073741824");
    other = read_quantity("1Gi");
    assert_int_equal(quantity_compare(&one, &other), 0);
    assert_true(quantity_compare(&one, &sum) > 0 && quantity_compare(&sum, &one) < 0);
    assert_true(quantity_add(&other, &other));
    assert_true(slice_is(quantity_write(&other, to), "2Gi"));
    one = read_quantity("999999999999999999999999999999999999");
    sum = read_quantity("1n");
    assert_false(quantity_add(&one, &sum));
    assert_true(quantity_compare(&one, &sum) > 0 && quantity_compare(&sum, &one) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantities_are_written_as_kubernetes_writes_them),
        cmocka_unit_test(a_canonical_quantity_stays_as_it_is),
        cmocka_unit_test(long_quantities_do_no_harm),
        cmocka_unit_test(quantities_are_added_and_compared_by_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
