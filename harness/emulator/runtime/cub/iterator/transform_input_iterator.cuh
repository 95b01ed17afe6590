#pragma once
#include <cub/iterators.h>
