#include "kube/validate/quantity.h"

#include <stdio.h>

static const quantity billion = 1000000000;
#define QUANTITY_MAX ((quantity)INT64_MAX * billion)

/* -- Amounts -- */

/* Multiplies by 10^power, rounded up and limited. */
static quantity scaled(quantity value, int power)
{
    while (power > 0 && value && value <= QUANTITY_MAX) {
        value *= 10;
        power--;
    }
    bool rest = false;
    while (power < 0 && value) {
        rest = rest || value % 10;
        value /= 10;
        power++;
    }
    value += rest;
    return value > QUANTITY_MAX ? QUANTITY_MAX : value;
}

/* The digits, and how many of them are behind the point. Digits that do not count are dropped. */
static size_t read_digits(struct slice text, quantity *ret_value, int *ret_power)
{
    bool point = false;
    size_t at = 0;
    *ret_value = 0;
    *ret_power = 0;
    for (; at < text.len; at++) {
        uint8_t c = text.ptr[at];
        if (c == '.' && !point) {
            point = true;
            continue;
        }
        if (c < '0' || c > '9')
            break;
        bool room = *ret_value < QUANTITY_MAX;
        if (room)
            *ret_value = *ret_value * 10 + (c - '0');
        *ret_power += room ? -(int)point : !point;
    }
    return at;
}

static int read_exponent(struct slice suffix)
{
    int power = 0;
    bool minus = suffix.len > 1 && suffix.ptr[1] == '-';
    for (size_t i = 1; i < suffix.len && power < 1000; i++) {
        if (suffix.ptr[i] >= '0' && suffix.ptr[i] <= '9')
            power = power * 10 + (suffix.ptr[i] - '0');
    }
    return minus ? -power : power;
}

static int decimal_power(struct slice suffix)
{
    static const struct {
        char unit;
        int8_t power;
    } units[] = {{'n', -9}, {'u', -6}, {'m', -3}, {'k', 3}, {'M', 6},
                 {'G', 9},  {'T', 12}, {'P', 15}, {'E', 18}};
    if (suffix.len > 1)
        return read_exponent(suffix);
    for (size_t i = 0; i < COUNT_OF(units) && suffix.len; i++) {
        if (suffix.ptr[0] == (uint8_t)units[i].unit)
            return units[i].power;
    }
    return 0;
}

static quantity with_suffix(quantity value, int power, struct slice suffix)
{
    static const char units[] = "KMGTPE";
    const char *unit =
        suffix.len == 2 && suffix.ptr[1] == 'i' ? strchr(units, suffix.ptr[0]) : NULL;
    if (!unit || !suffix.ptr[0])
        return scaled(value, power + decimal_power(suffix) + 9);
    for (long i = 0; i <= unit - units && value <= QUANTITY_MAX; i++)
        value *= 1024;
    return scaled(value, power + 9);
}

quantity quantity_of(struct check *c, const struct json_node *node)
{
    struct slice text = text_of(c, node);
    bool minus = text.len && text.ptr[0] == '-';
    quantity value;
    int power;
    if (text.len && (minus || text.ptr[0] == '+'))
        text = slice_sub(text, 1, text.len - 1);
    size_t digits = read_digits(text, &value, &power);
    value = with_suffix(value, power, slice_sub(text, digits, text.len - digits));
    return minus ? -value : value;
}

static bool is_binary(struct slice text)
{
    return text.len > 2 && text.ptr[text.len - 1] == 'i';
}

/* Divides by the factor as often as nothing is lost, at most so many times. */
static int reduce(quantity *value, int factor, int times)
{
    int count = 0;
    while (count < times && *value && *value % factor == 0) {
        *value /= factor;
        count++;
    }
    return count;
}

struct slice quantity_text(struct check *c, const struct json_node *node)
{
    static const char *const decimal[] = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
    static const char *const binary[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    struct slice given = text_of(c, node), shown = given;
    quantity value = quantity_of(c, node), whole = value / billion;
    char text[64];
    const char *suffix;
    if (given.len && memchr(given.ptr, 'e', given.len))
        return given;
    if (is_binary(given) && value % billion == 0 && (whole >= 1024 || whole <= -1024)) {
        suffix = binary[reduce(&whole, 1024, 6)];
        value = whole;
    } else {
        suffix = value ? decimal[reduce(&value, 1000, 9)] : "";
    }
    int len = snprintf(text, sizeof(text), "%lld%s", (long long)value, suffix);
    if (arena_dup(c->arena, slice_of(text, (size_t)len), &shown) != ST_OK)
        c->errors->no_memory = true;
    return shown;
}

int64_t quantity_units(quantity amount)
{
    return (int64_t)(amount > 0 ? (amount + billion - 1) / billion : amount / billion);
}

void check_quantity_not_negative(struct check *c, const struct at *at,
                                 const struct json_node *amount)
{
    if (quantity_of(c, amount) < 0)
        bad_text(c, at, quantity_text(c, amount), "must be greater than or equal to 0");
}

void check_quantity_positive(struct check *c, const struct at *at, const struct json_node *amount)
{
    if (quantity_of(c, amount) <= 0)
        bad_text(c, at, quantity_text(c, amount), "must be greater than zero");
}

void check_quantity_of(struct check *c, const struct at *at, struct slice resource,
                       const struct json_node *amount)
{
    check_quantity_not_negative(c, at, amount);
    if (resource_is_counted(resource) && quantity_of(c, amount) % billion)
        bad_text(c, at, quantity_text(c, amount), "must be an integer");
}

/* -- Names -- */

#define COUNTED                                                               \
    "pods,resourcequotas,services,replicationcontrollers,secrets,configmaps," \
    "persistentvolumeclaims,services.nodeports,services.loadbalancers"
#define COMPUTED                                                                            \
    "cpu,memory,ephemeral-storage,requests.cpu,requests.memory,requests.ephemeral-storage," \
    "limits.cpu,limits.memory,limits.ephemeral-storage,requests.storage"

static bool has_prefix(struct slice name, const char *prefix)
{
    size_t len = strlen(prefix);
    return name.len >= len && memcmp(name.ptr, prefix, len) == 0;
}

static bool is_qualified(struct slice name)
{
    return name.len && memchr(name.ptr, '/', name.len);
}

bool resource_is_huge_page(struct slice name)
{
    return has_prefix(name, "hugepages-");
}

static bool is_standard(struct slice name)
{
    return one_of(name, COMPUTED "," COUNTED ",storage") || resource_is_huge_page(name) ||
           has_prefix(name, "requests.hugepages-");
}

bool resource_is_standard_quota(struct slice name)
{
    return is_standard(name) && !slice_equal(name, SLICE_LITERAL("storage"));
}

bool resource_is_native(struct slice name)
{
    return !is_qualified(name) || memmem(name.ptr, name.len, "kubernetes.io/", 14);
}

/* In a quota it has a prefix, which counts. */
bool resource_is_extended(struct slice name)
{
    char quota[512], why[NAME_ERROR_BYTES];
    if (resource_is_native(name) || has_prefix(name, "requests.") || name.len > 400)
        return false;
    snprintf(quota, sizeof(quota), "requests.%.*s", SLICE_ARGS(name));
    return label_key_valid(slice_from_text(quota), why);
}

bool resource_is_counted(struct slice name)
{
    return one_of(name, COUNTED) || resource_is_extended(name);
}

bool check_resource_name(struct check *c, const struct at *at, struct slice name)
{
    if (!check_name(c, at, name, label_key_valid))
        return false;
    if (is_qualified(name) || is_standard(name))
        return true;
    bad_text(c, at, name, "must be a standard resource type or fully qualified");
    return false;
}

bool check_container_resource_name(struct check *c, const struct at *at, struct slice name)
{
    bool fine = check_resource_name(c, at, name);
    const char *why = NULL;
    if (!is_qualified(name)) {
        if (!one_of(name, "cpu,memory,ephemeral-storage") && !resource_is_huge_page(name))
            why = "must be a standard resource for containers";
    } else if (!resource_is_native(name) && !resource_is_extended(name)) {
        why = "doesn't follow extended resource name standard";
    }
    if (why)
        bad_text(c, at, name, why);
    return fine && !why;
}

void check_quota_resource_name(struct check *c, const struct at *at, struct slice name)
{
    check_resource_name(c, at, name);
    if (!is_qualified(name) && !resource_is_standard_quota(name))
        bad_text(c, at, name, "must be a standard resource for quota");
}
