# Included by vigil_layer(kube): the program that is compared with Kubernetes' own code (tests/kube_oracle.py).

vigil_tool(kube_oracle kube ${CMAKE_SOURCE_DIR}/tests/kube_oracle.c)
set_property(GLOBAL APPEND PROPERTY vigil_tests_of_kube kube_oracle)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME kube/oracle COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/kube_oracle.py $<TARGET_FILE:kube_oracle>)
set_tests_properties(kube/oracle PROPERTIES TIMEOUT 300)
vigil_corpus(kube schema)
vigil_corpus(kube custom)
vigil_corpus(kube defaults)
vigil_corpus(kube validate)
vigil_corpus(kube apply)
vigil_corpus(kube patch)
vigil_corpus(kube selector)
vigil_corpus(kube continue)
vigil_corpus(kube request)
vigil_corpus(kube review)
vigil_corpus(kube table)
vigil_tool(rules_bench kube ${CMAKE_SOURCE_DIR}/bench/layers/rules_bench.c)

vigil_failing_memory(kube_policy_webhooks_review_test)

# Calls on a simulated network (src/client/sim/faulty_sim_test.h).
foreach(test webhook_caller webhook_endpoints call_conversion_batch handlers_read_event_conversions)
    vigil_failing_memory(kube_${test}_test)
    cmake_language(EVAL CODE "cmake_language(DEFER CALL target_link_options kube_${test}_test PRIVATE
        -Wl,--wrap=loop_turn,--wrap=loop_watch,--wrap=random_seed_system)")
endforeach()
