// Gives headers that many sources share a target to be compiled in (TriptychTargets.cmake).
// SPDX-License-Identifier: Apache-2.0
