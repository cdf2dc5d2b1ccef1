# The installed headers of the client library.
target_include_directories(vigil_tier PUBLIC ${CMAKE_SOURCE_DIR}/include)

# Calls on a simulated network (src/client/sim/faulty_sim_test.h).
foreach(test link_link read_version forward_forward forward_forward_upgrade forward_forward_refusal rights_denial rights_identify rights_line rights_may rights_readiness rights_standing)
    vigil_failing_memory(tier_${test}_test)
    cmake_language(EVAL CODE "cmake_language(DEFER CALL target_link_options tier_${test}_test PRIVATE
        -Wl,--wrap=loop_turn,--wrap=loop_watch,--wrap=random_seed_system)")
endforeach()

# The same, and the test waits for the store (src/tier/mirror/world_sim_test.h).
foreach(test mirror_mirror mirror_random mirror_history mirror_fence mirror_memory mirror_threads)
    vigil_failing_memory(tier_${test}_test)
    cmake_language(EVAL CODE "cmake_language(DEFER CALL target_link_options tier_${test}_test PRIVATE
        -Wl,--wrap=loop_turn,--wrap=loop_watch,--wrap=random_seed_system,--wrap=local_mirror_apply,--wrap=local_mirror_retry,--wrap=local_mirror_revision)")
endforeach()

# The same, and all users may read.
vigil_failing_memory(tier_read_watch_test)
cmake_language(EVAL CODE "cmake_language(DEFER CALL target_link_options tier_read_watch_test PRIVATE
    -Wl,--wrap=loop_turn,--wrap=loop_watch,--wrap=random_seed_system,--wrap=local_mirror_apply,--wrap=local_mirror_retry,--wrap=local_mirror_revision,--wrap=tier_identify,--wrap=tier_may,--wrap=tier_standing_add)")

# For tests/kube/tier_rights_test.py.
vigil_tool(tier_rights tier ${CMAKE_SOURCE_DIR}/tests/tier_rights.c)
set_property(GLOBAL APPEND PROPERTY vigil_tests_of_tier tier_rights)

vigil_corpus(tier head)
vigil_corpus(tier object)
vigil_corpus(tier review)
