"""What placers and advice share: chains of moves, coarse units, memory, choice by simulation."""
