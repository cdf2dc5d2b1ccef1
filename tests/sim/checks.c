#include "checks.h"

#include "kube_model.h"
#include "maintenance.h"
#include "operations.h"
#include "tier_states.h"
#include "tier_watches.h"
#include "watchers.h"

void checks_run(void)
{
    operations_check_known();
    watchers_check_known();
    kube_model_check_known();
    tier_states_check_known();
    tier_watches_check_known();
    maintenance_check_known();
}

void checks_finish(bool partial)
{
    kube_model_check_known();
    watchers_check(partial);
    operations_check(partial);
    if (!partial)
        kube_model_finish();
}
