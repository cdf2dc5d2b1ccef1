add_executable(watch_bench EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/tests/watch_bench.c)
target_link_libraries(watch_bench PRIVATE vigil_watch)
set_target_properties(watch_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unit)
