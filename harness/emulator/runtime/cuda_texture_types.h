// Often included for nothing. What it declares is not covered, and named where it is used.
#pragma once
