#include "watch/model_test.h"

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_watcher_receives_what_the_history_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
