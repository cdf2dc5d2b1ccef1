# Included by vigil_layer(regex): the program that is compared with Go's regexp (tests/regex_oracle.py).

vigil_tool(regex_oracle regex ${CMAKE_SOURCE_DIR}/tests/regex_oracle.c)
set_property(GLOBAL APPEND PROPERTY vigil_tests_of_regex regex_oracle)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME regex/oracle COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/regex_oracle.py $<TARGET_FILE:regex_oracle>)
set_tests_properties(regex/oracle PROPERTIES TIMEOUT 300)
